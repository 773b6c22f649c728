// Package ledger counts the noops of one connection: which came, which did not, and when. It does
// no I/O, starts no goroutine and reads no clock.
//
// Noops are counted twice, because each count sees what the other cannot:
//
//   - by number, where they carry an `id:` of 1, 2, 3 … per device (numberCounter). A hole in the
//     numbers is a noop that was sent and lost on the way.
//   - by the clock (clockCounter). Every interval has a slot, in which one noop is owed. A slot that
//     stays empty is a noop that never came, whether or not the server noticed.
//
// A late noop arrives before the next one is due and fills its own slot, so lateness is never
// taken for loss; see slots. docs/accounting.md has the assumptions.
package ledger

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An Instant is a monotonic time since the start of the runner, and positive. Wall clocks may
// be stepped during a run; instants are not.
type Instant = time.Duration

// Config is shared by all ledgers of a run.
type Config struct {
	// Interval is the promised distance between two noops of a connection. It must be positive.
	Interval time.Duration
	// Late is the lateness above which a noop counts as late. A noop that is due for less than that
	// (at most half an interval) when its stream ends may still be on its way.
	Late time.Duration

	// Counting says what is counted. The zero value is noops: by number and by the clock.
	Counting Counting
	// AnyOrder and Repeats: the service does not promise the order of messages, or may bring one again.
	AnyOrder, Repeats bool
	// Resumes reports whether the service promises to send missed messages to a client that has an id to resume from.
	Resumes bool
	// Published: a publisher knows what is owed, so a hole in the numbers is no loss by itself.
	Published bool
	// Most is the highest number that can be published to a topic; 0: not known.
	Most uint64
	// IgnoresSilence turns off the measurement of the longest silence.
	IgnoresSilence bool
	// ClientEnds: a stream that the client closes at the end is completed.
	ClientEnds bool
	// Cuts: the client cuts its streams itself, to see them resume.
	Cuts bool
	// Lifetime is how long a stream lives at least where the service ends streams on purpose; 0: it does not.
	Lifetime time.Duration
	// Longest is how long it lives at most; 0: not said.
	Longest time.Duration
	// MaxOutage is the longest outage of a client at the time its end is requested. After a longer outage the client counts
	// as dropped. 0: clients do not reconnect.
	MaxOutage time.Duration

	// How many streams of the runner take the service's ids for a sequence, and how many do not.
	sequences, others atomic.Int64
}

func (c *Config) tolerance() time.Duration { return min(c.Late, c.Interval/2) }

// Counting is what a ledger counts.
type Counting int

const (
	// Noops come once per interval: they are counted by number and by the clock.
	Noops Counting = iota
	// Numbered are messages that come whenever somebody publishes one: they are counted by the numbers in them.
	Numbered
	// Nothing is counted: streams are held, and their silences are measured.
	Nothing
)

// State is what a connection is doing, or how it ended.
type State string

// The states of a connection. Completed is the only good end.
const (
	Planned    State = "planned"    // nothing was tried yet
	Connecting State = "connecting" // a first dial is under way
	Open       State = "open"       // a stream is open
	Waiting    State = "waiting"    // a stream was lost, a reconnect follows
	Completed  State = "completed"  // the server ended the stream because it was asked to
	Dropped    State = "dropped"    // the stream ended before its end was requested
	Refused    State = "refused"    // no stream was ever opened
	Unfinished State = "unfinished" // the client gave up: interrupted, or no end after the request for it
)

// Reasons for an end that came from the client, as arguments of Closed.
const (
	ReasonClient      = "client"      // the script closed the stream
	ReasonInterrupted = "interrupted" // the run was stopped
	ReasonCut         = "cut"         // the client cut the stream, to see it resume
)

// ReasonNoAnswer is why a connection was refused if its first dial was still under way when its end was
// requested.
const ReasonNoAnswer = "no answer before the end"

// Bounds on what one connection may remember: a ledger never grows with time.
const (
	maxFindings     = 16
	maxLateFindings = 4 // of these: lateness is common, and must leave room for losses
	maxOutages      = 16
	maxReasons      = 16 // for which attempts failed
)

// A Ledger counts the noops of one device id over all its streams. The zero value is not
// usable; see New. All methods may be called from any goroutine.
type Ledger struct {
	mu  sync.Mutex
	rec summary

	connection
	clock    clockCounter
	byNumber *numberCounter // from the start, for what happens before the first noop; nil: their ids do not number them
	messages *deliveries    // counts Numbered messages; nil: noops are counted
	cuts     *cuts          // nil: the run makes none
	silences *silences      // nil: silences are not measured
	lastID   lastID

	dials  *dials  // nil: none was made since the last stream, and nobody asks when that was dialed
	outage *Outage // the present one; nil: there is none
}

// dials are the attempts since the last stream; of an open one those that led to it.
type dials struct {
	from Instant // the first
	last Instant
	over bool // a stream is open
}

// begun is the first of them.
func (d *dials) begun() Instant {
	if d == nil {
		return 0
	}
	return d.from
}

// latest is the last of them.
func (d *dials) latest() Instant {
	if d == nil {
		return 0
	}
	return d.last
}

// silences are the times without a sign of life on a stream.
type silences struct {
	heardAt Instant       // the last sign
	longest time.Duration // the longest time without one
	from    Instant       // when it began
}

// silence returns the silences, and allocates them on first use.
func (l *Ledger) silence() *silences {
	if l.silences == nil {
		l.silences = &silences{heardAt: l.openedAt}
	}
	return l.silences
}

// New returns the ledger of one device id. cfg is kept, not copied: one for all ledgers.
func New(id string, cfg *Config) *Ledger {
	l := &Ledger{connection: connection{cfg: cfg}, rec: summary{ID: id}}
	l.clock.connection = &l.connection
	if cfg.Cuts {
		l.cuts = new(cuts)
	}
	switch cfg.Counting {
	case Noops:
		l.byNumber = &numberCounter{counter: counter{connection: &l.connection}}
	case Numbered:
		l.messages = &deliveries{counter: counter{connection: &l.connection}, numbers: numbers{limit: maxSpans}}
	case Nothing:
	}
	return l
}

// Counting is what the ledger counts.
func (l *Ledger) Counting() Counting { return l.cfg.Counting }

// ID is the device id.
func (l *Ledger) ID() string { return l.rec.ID }

// Undecided is how long it will still be unknown whether the noop of the present slot is lost or on its
// way; 0 if none is due. A script that waits for that long before it requests the end leaves no noop
// undecided.
func (l *Ledger) Undecided(at Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Counting != Noops {
		return 0
	}
	c := l.counterOf(l.numbersDecide())
	if !l.streamOpen || !c.sawNoop {
		return 0
	}
	if burst := c.lastAt + l.cfg.Interval/2; c.slots.balance > 0 && at < burst {
		return burst - at // what was held up with the last noop may be right behind it
	}
	within := c.slots.tolerance(l.cfg.tolerance(), l.cfg.Interval) + share(l.cfg.Interval, aboutDue)
	due := c.slots.nextDue(at-within, c.lastAt, l.cfg.Interval)
	if at < due-within/4 {
		return 0
	}
	return due + within - at
}

// Record is a copy of all counts and findings so far.
func (l *Ledger) Record() (r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sumUp(&r)
	l.rec.fillLists(&r)
	r.Cuts = l.cuts.copied()
	var of *counter
	if l.messages != nil {
		of = &l.messages.counter
		l.messages.fillLists(&r)
	} else if of = l.counterOf(r.Numbered); r.Numbered {
		for _, h := range l.byNumber.numbers.holes() {
			r.find(h.finding())
		}
	}
	faults := of.seen()
	r.Unlisted += faults.unlisted
	for _, f := range slices.Concat(faults.findings, l.rec.rarities().Findings) {
		r.find(f)
	}
	return r
}

// Sums is Record without its lists: cheap enough to call on every ledger once a second.
func (l *Ledger) Sums() (r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sumUp(&r)
	return r
}

// A Steady is all that Sums says of a connection whose first stream is open and has shown no fault, as of most of thousands.
type Steady struct {
	Received, Hidden uint64
	LastAt           Instant
}

// Steady is false where there is more to say. It looks at a third of what Sums does, and is taken of every ledger once a second.
func (l *Ledger) Steady() (s Steady, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Counting != Noops || !l.streamOpen || l.streams != 1 || l.rec.rare != nil || l.rec.State() != Open {
		return s, false
	}
	if n := l.byNumber; l.clock.faults != nil || n != nil && (n.faults != nil || n.numbers.lost() > 0) {
		return s, false // in either count: which of them decides may change
	}
	c := l.counterOf(l.numbersDecide())
	return Steady{Received: c.Received, Hidden: uint64(c.Hidden), LastAt: c.lastAt}, true
}

func (l *Ledger) sumUp(r *Record) {
	l.rec.fill(r)
	r.Streams = int(l.streams)
	if s := l.silences; s != nil {
		r.MaxSilence, r.SilentFrom = s.longest, s.from
	}
	switch {
	case l.messages != nil:
		r.Numbered = true
		l.messages.fill(r)
	case l.cfg.Counting == Nothing:
	case l.numbersDecide():
		r.Numbered = true
		l.byNumber.fill(r)
	default:
		l.clock.fill(r)
	}
	if l.rec.rare != nil {
		r.Add(l.rec.rare.Counts)
	}
}
