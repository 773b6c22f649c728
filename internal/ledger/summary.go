package ledger

import (
	"slices"
	"time"
)

// A summary is what a ledger keeps of its Record beside the counts of noops. There are many thousand ledgers, and most streams
// open once and are held to their end: what else can happen is behind one pointer.
type summary struct {
	ID       string
	State    State
	Reason   string
	Attempts int
	Connect  time.Duration
	OpenedAt Instant
	ClosedAt Instant
	Held     time.Duration
	Open     time.Duration
	Away     time.Duration
	longest  [2]Instant // of all times without a stream, the longest, unless there was more to tell of it: mostly the first connect
	rare     *rarities  // nil: none yet
}

// rarities are what few streams have.
type rarities struct {
	Counts // of what is no message

	Findings   []Finding
	Unlisted   int
	Others     []EventCount
	Unanswered time.Duration

	Refusals  []Refusal
	Longest   Outage // where longest does not tell all of it
	Survived  int
	MaxOutage time.Duration
	Outages   []Outage

	kept       uint64  // noops of the last outage that the service may still be sending, since it kept them for the client
	replayedAt Instant // when the last of them came
}

// rarely are the rarities, to be written.
func (s *summary) rarely() *rarities {
	if s.rare == nil {
		s.rare = new(rarities)
	}
	return s.rare
}

// rarities are the same, to be read.
func (s *summary) rarities() rarities {
	if s.rare == nil {
		return rarities{}
	}
	return *s.rare
}

// fill writes the summary into a record, without its lists.
func (s *summary) fill(r *Record) {
	rare := s.rarities()
	*r = Record{
		ID: s.ID, State: s.State, Reason: s.Reason, Attempts: s.Attempts, Connect: s.Connect, OpenedAt: s.OpenedAt,
		ClosedAt: s.ClosedAt, Held: s.Held, Open: s.Open, Away: s.Away, Longest: s.theLongest(),
		Unlisted: rare.Unlisted, Unanswered: rare.Unanswered, Survived: rare.Survived, MaxOutage: rare.MaxOutage,
	}
}

// fillLists adds what Record has and Sums leaves out. Findings are added last of all.
func (s *summary) fillLists(r *Record) {
	rare := s.rarities()
	r.Outages, r.Others, r.Refusals = slices.Clone(rare.Outages), slices.Clone(rare.Others), slices.Clone(rare.Refusals)
}

// theLongest is the longest time without a stream.
func (s *summary) theLongest() Outage {
	if s.rare != nil && s.rare.Longest.To > 0 {
		return s.rare.Longest
	}
	return Outage{From: s.longest[0], To: s.longest[1]}
}

// wasAway adds a time without a stream.
func (s *summary) wasAway(o *Outage) {
	s.Away += o.To - o.From
	longest := s.theLongest()
	if o.To-o.From <= longest.To-longest.From {
		return
	}
	if s.rare == nil && o.Refusals == nil && o.Resumed == 0 && !o.Planned && !o.Cut {
		s.longest = [2]Instant{o.From, o.To}
		return
	}
	s.rarely().Longest = *o
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
