package ledger

import (
	"slices"
	"time"
)

// A summary is what a ledger keeps of its Record beside the counts of noops. There are many thousand ledgers, and most streams
// open once and are held to their end: what else can happen is behind one pointer.
type summary struct {
	ID       string
	first    [2]Instant // the first time without a stream, unless there was more to tell of it: from the first dial to the headers
	past     *past      // nil: no stream or attempt has ended yet
	rare     *rarities  // nil: none yet
	Attempts uint32
	state    state
	opened   bool // first ended with a stream: it tells of Connect and OpenedAt, too
}

// past is what is known when a stream, or an attempt, has ended.
type past struct {
	Reason   string
	ClosedAt Instant
	Held     time.Duration
	Open     time.Duration
}

// state is a State in one byte.
type state uint8

// states has them in the order of a connection's life.
var states = [...]State{Planned, Connecting, Open, Waiting, Completed, Dropped, Refused, Unfinished}

// State is what the connection is doing, or how it ended.
func (s *summary) State() State { return states[s.state] }

// become changes the State.
func (s *summary) become(to State) { s.state = state(slices.Index(states[:], to)) } //nolint:gosec // G115: states has eight elements

// ended is the past, to be written.
func (s *summary) ended() *past {
	if s.past == nil {
		s.past = new(past)
	}
	return s.past
}

var noPast past

// theEnd is the same, to be read.
func (s *summary) theEnd() *past {
	if s.past == nil {
		return &noPast
	}
	return s.past
}

// connected notes the first stream, and how long it took to get it.
func (s *summary) connected(at Instant, took time.Duration) {
	if s.first[1] == at && at-s.first[0] == took {
		s.opened = true
		return
	}
	s.rarely().Connect, s.rare.OpenedAt = took, at
}

// rarities are what few streams have.
type rarities struct {
	Counts // of what is no message

	Findings   []Finding
	Unlisted   int
	Others     []EventCount
	Unanswered time.Duration
	LastOutage *Outage

	Connect  time.Duration // where first does not tell of it
	OpenedAt Instant       // the same
	Away     time.Duration // but first

	Refusals  []Refusal
	Longest   Outage // where first does not tell all of it
	Survived  int
	MaxOutage time.Duration
	Outages   []Outage

	reset *idReset // the latest; nil: none

	latest     *Outage // the latest outage after which the client reconnected
	kept       uint64  // noops of that outage that the service may still replay
	replayedAt Instant // when the last of them came
}

// rarely are the rarities, to be written.
func (s *summary) rarely() *rarities {
	if s.rare == nil {
		s.rare = new(rarities)
	}
	return s.rare
}

var noRarities rarities

// rarities are the same, to be read.
func (s *summary) rarities() *rarities {
	if s.rare == nil {
		return &noRarities
	}
	return s.rare
}

// fill writes the summary into a record, without its lists.
func (s *summary) fill(r *Record) {
	rare, end := s.rarities(), s.theEnd()
	*r = Record{
		ID: s.ID, State: s.State(), Reason: end.Reason, Attempts: int(s.Attempts), Connect: rare.Connect, OpenedAt: rare.OpenedAt,
		ClosedAt: end.ClosedAt, Held: end.Held, Open: end.Open, Away: s.first[1] - s.first[0] + rare.Away, Longest: s.theLongest(),
		Unlisted: rare.Unlisted, Unanswered: rare.Unanswered, Survived: rare.Survived, MaxOutage: rare.MaxOutage,
	}
	if s.opened {
		r.Connect, r.OpenedAt = s.first[1]-s.first[0], s.first[1]
	}
}

// fillLists adds what Record has and Sums leaves out. Findings are added last of all.
func (s *summary) fillLists(r *Record) {
	rare := s.rarities()
	r.LastOutage = rare.LastOutage
	r.Outages, r.Others, r.Refusals = slices.Clone(rare.Outages), slices.Clone(rare.Others), slices.Clone(rare.Refusals)
}

// theLongest is the longest time without a stream.
func (s *summary) theLongest() Outage {
	if s.rare != nil && s.rare.Longest.To > 0 {
		return s.rare.Longest
	}
	return Outage{From: s.first[0], To: s.first[1]}
}

// wasAway adds a time without a stream.
func (s *summary) wasAway(o *Outage) {
	longest := s.theLongest()
	switch took := o.To - o.From; {
	case took <= 0:
	case s.rare == nil && longest.To == 0 && o.Refusals == nil && o.Resumed == 0 && !o.Planned && !o.Cut:
		s.first = [2]Instant{o.From, o.To}
	default:
		s.rarely().Away += took
		if took > longest.To-longest.From {
			s.rare.Longest = *o
		}
	}
}

// find adds a finding, or counts it where there are too many.
func (s *summary) find(f Finding) {
	r := s.rarely()
	r.Findings, r.Unlisted = listed(r.Findings, r.Unlisted, f)
}

// survived counts an outage that ended with a stream, and lists it among the first.
func (s *summary) survived(o *Outage) {
	r := s.rarely()
	r.Survived++
	r.MaxOutage = max(r.MaxOutage, o.To-o.From)
	if len(r.Outages) < maxOutages {
		r.Outages = append(r.Outages, *o)
	}
}

// listed adds a finding to a list, or counts it where that is full.
func listed(list []Finding, unlisted int, f Finding) ([]Finding, int) {
	if len(list) >= maxFindings {
		return list, unlisted + 1
	}
	return append(list, f), unlisted
}
