// Package ledger counts the messages of one client: expected, received and missing. It does no I/O, starts no goroutine
// and reads no clock.
//
// Noops are messages that are sent at an interval. They are counted twice, because each count finds faults that the
// other cannot find:
//
//   - by number, if they have an `id:` of 1, 2, 3 … per client (numberCounter). A skipped number is a noop that was
//     sent and lost.
//   - by interval (clockCounter). One noop is expected in the slot of each interval. An empty slot is a noop that did
//     not arrive, whether or not the server sent it.
//
// A late noop that arrives before the next one is due fills its own slot, so lateness does not count as loss; see
// slots. docs/accounting.md lists the assumptions. Other messages are counted by number alone (deliveries). If they
// carry no numbers, the Log of their topic numbers them. A Response counts the chunks of a response that ends by
// itself.
package ledger

import (
	"sync"
	"sync/atomic"
	"time"
)

// An Instant is a positive monotonic time since the start of the runner. It does not depend on steps of the wall clock.
type Instant = time.Duration

// Config is the configuration that all ledgers of a runner share.
type Config struct {
	// Interval is the planned time between two noops of a client. It must be positive if Counting is Noops.
	Interval time.Duration
	// LatenessLimit is the lateness above which a message counts as late. A noop may be in transit when its stream
	// ends. It is not expected if it was due less than LatenessLimit, and less than half an interval, before the end. On a
	// stream with much jitter, that time is longer; see slots.tolerance.
	LatenessLimit time.Duration

	Counting Counting
	// AnyOrder reports whether the service may reorder messages, or whether only the merge can determine their order.
	AnyOrder bool
	// Repeats reports whether the service may send a message twice.
	Repeats bool
	// Resumes reports whether the service promises to send missed messages to a client that has an id to resume from.
	Resumes bool
	// PerStream reports whether each stream that does not resume the previous one has its own numbers. Such a stream
	// starts with the lowest number that the client received so far, or a lower one, unless its first messages are lost.
	PerStream bool
	// Published reports whether the merge knows the expected messages, from the publisher or from other clients, so that a
	// hole alone is not a loss.
	Published bool
	// MaxNumber is the highest number that can be published to a topic, or 0 if it is unknown.
	MaxNumber uint64
	// IgnoresSilence turns off the measurement of the longest silence.
	IgnoresSilence bool
	// ClientEnds reports whether a stream that the client closes at the end counts as completed.
	ClientEnds bool
	// Cuts reports whether the client disconnects or pauses its streams on purpose, to test that they resume.
	Cuts bool
	// Lifetime is the minimum lifetime of a stream if the service ends streams on purpose, or 0 if it does not.
	Lifetime time.Duration
	// MaxLifetime is the maximum lifetime of a stream, or 0 if it is unknown.
	MaxLifetime time.Duration
	// MaxOutage is the maximum duration of an outage in progress when the end of a client is requested. After a longer
	// outage, the client counts as dropped unless the current attempt opens a stream, or stream.lifetimeOver is set. 0
	// means that clients do not reconnect.
	MaxOutage time.Duration

	sequences, nonSequences atomic.Int64 // clients of the runner whose ids are a sequence, and clients whose ids are not
}

// tolerance returns the time before the end of a stream in which a due noop may still be in transit.
func (c *Config) tolerance() time.Duration { return min(c.LatenessLimit, c.Interval/2) }

// Counting is the kind of messages that a ledger counts.
type Counting int

const (
	// Noops arrive once per interval. They are counted by number and by interval.
	Noops Counting = iota
	// Numbered messages arrive at any time. They are counted by their own numbers, or by their numbers in the Log of
	// their topic.
	Numbered
	// Nothing means that messages are not counted. States, outages and silences are still recorded.
	Nothing
)

// A State is the activity of a client, or how it ended.
type State string

// The states of a client. Completed is the only end as planned.
const (
	Planned    State = "planned"    // no attempt has been made yet
	Connecting State = "connecting" // no stream has been opened yet
	Open       State = "open"       // a stream is open
	Waiting    State = "waiting"    // a stream was lost, and the client is reconnecting
	Completed  State = "completed"  // the stream ended as planned
	Dropped    State = "dropped"    // the stream ended before its end was requested
	Refused    State = "refused"    // no stream was opened
	Unfinished State = "unfinished" // the run was stopped, the script closed the stream, or a requested end failed
)

// The reasons for an end by the client, as arguments of Closed.
const (
	ReasonClient      = "client"      // the script closed the stream
	ReasonInterrupted = "interrupted" // the run was stopped
	ReasonCut         = "cut"         // the client disconnected on purpose
)

// ReasonNoAnswer is the reason of a refused client whose first dial was in progress when its end was requested.
const ReasonNoAnswer = "no answer before the end"

// The limits of the lists of one client, so that a ledger does not grow with time.
const (
	maxFindings     = 16
	maxLateFindings = 4 // late messages are common, and must leave room for other findings
	maxOutages      = 16
	maxReasons      = 16 // reasons of failed attempts
)

// A Ledger counts the messages of one client over all its streams. New creates it. Any goroutine may call its methods.
type Ledger struct {
	mu       sync.Mutex
	id       string
	state    State
	attempts uint32

	// connectIsPlain reports whether no attempt failed before the first stream, so that the first connect needs no extras.
	connectIsPlain bool
	opening        bool // no stream has opened since the attempt at dials.first
	idState        resumeIDState
	// connect is the time from the first dial to the headers of the first stream, or to the end of a refused client.
	connect  time.Duration
	openedAt Instant // arrival of the headers of the first stream

	stream   stream
	end      streamEnd
	dials    dials
	silences silences
	outage   *Outage // the present outage; nil outside of outages
	extra    *extras // nil: not needed so far

	clock    clockCounter
	byNumber *numberCounter // counts noops by number; nil if their ids are not a sequence, or Counting is not Noops
	messages *deliveries    // counts Numbered messages; nil if Counting is not Numbered
}

// A stream is the state of the present stream, which all counters share.
type stream struct {
	cfg              *Config
	openedAt         Instant // arrival of the headers
	closeRequestedAt Instant // 0: the end was not requested
	count            uint32  // number of opened streams, including this one
	open             bool
	lifetimeOver     bool // the server ended the last stream after its lifetime, and no attempt has failed since
	dialing          bool // an attempt is in progress
	clientEnds       bool // see EndByClient
	idClass          idClass
	cuts             *cuts // nil without Config.Cuts
}

// openedAfterRequest reports whether the stream was opened after the request to end. No noop is due on it, but it may
// deliver noops that earlier streams missed.
func (s *stream) openedAfterRequest() bool {
	return s.closeRequestedAt != 0 && s.openedAt >= s.closeRequestedAt
}

// expectedUntil returns the instant up to which messages are expected on a stream that ends at the given instant.
func (s *stream) expectedUntil(at Instant) Instant {
	if s.closeRequestedAt != 0 {
		return min(at, s.closeRequestedAt)
	}
	return at
}

// A streamEnd is the end of the last stream, or of the last attempt to open one, with sums over all streams.
type streamEnd struct {
	reason    string
	at        Instant
	openTotal time.Duration // headers to end
	open      time.Duration // headers to the request to end
}

// dials are the times of the attempts that lead to the next stream. They are kept until the first attempt after that
// stream.
type dials struct {
	first, last Instant
}

type silences struct {
	lastSignAt Instant       // the last sign of life
	longest    time.Duration // the longest silence
	startedAt  Instant       // start of the longest silence
}

// New returns the ledger of one client. All ledgers of a runner share cfg.
func New(id string, cfg *Config) *Ledger {
	l := &Ledger{id: id, state: Planned, stream: stream{cfg: cfg}}
	l.clock.stream = &l.stream
	if cfg.Cuts {
		l.stream.cuts = new(cuts)
	}
	switch cfg.Counting {
	case Noops:
		l.byNumber = &numberCounter{counter: counter{stream: &l.stream}}
	case Numbered:
		l.messages = &deliveries{counter: counter{stream: &l.stream}, numbers: numbers{limit: maxSpans}}
	case Nothing:
	}
	return l
}

// Counting returns the kind of messages that the ledger counts.
func (l *Ledger) Counting() Counting { return l.stream.cfg.Counting }

// ID returns the id of the client.
func (l *Ledger) ID() string { return l.id }

// UndecidedTime returns the time until it is known whether the noop of the present slot is lost or in transit. It
// returns 0 if no noop is due, or if none has arrived on an open stream. A script waits for that time before it
// requests the end, so that no noop is undecided.
func (l *Ledger) UndecidedTime(at Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.cfg.Counting != Noops {
		return 0
	}
	c := l.counterOf(l.numbersDecide())
	if !l.stream.open || !c.hasMessage {
		return 0
	}
	if burst := c.lastAt + l.stream.cfg.Interval/2; c.slots.balance > 0 && at < burst {
		return burst - at // delayed noops may follow the last one
	}
	tolerance := c.slots.tolerance(l.stream.cfg.tolerance(), l.stream.cfg.Interval) + share(l.stream.cfg.Interval, duePrecision)
	due := c.slots.nextDue(at-tolerance, c.lastAt, l.stream.cfg.Interval)
	if at < due-tolerance/4 {
		return 0
	}
	return due + tolerance - at
}

// Record returns a copy of all counts and findings so far.
func (l *Ledger) Record() (r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sumUp(&r)
	if l.stream.cuts != nil && len(l.stream.cuts.List) > 0 {
		r.Cuts = l.stream.cuts.Clone()
		if !r.Numbered && l.byNumber != nil {
			r.Cuts.removeNumbers()
		}
	}
	if l.extra != nil {
		l.extra.fillLists(&r)
	}
	var c *counter
	if l.messages != nil {
		c = &l.messages.counter
		l.messages.fillLists(&r)
	} else if c = l.counterOf(r.Numbered); r.Numbered {
		for _, h := range l.byNumber.numbers.holes {
			r.AddFinding(h.finding())
		}
	}
	if faults := c.faults; faults != nil {
		r.Unlisted += faults.unlisted
		for _, f := range faults.findings {
			r.AddFinding(f)
		}
	}
	if l.extra != nil {
		for _, f := range l.extra.Findings {
			r.AddFinding(f)
		}
	}
	return r
}

// Sums returns a Record without its lists. It is cheap enough to call on every ledger once a second.
func (l *Ledger) Sums() (r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sumUp(&r)
	return r
}

func (l *Ledger) sumUp(r *Record) {
	l.fill(r)
	switch {
	case l.messages != nil:
		r.Numbered = true
		l.messages.fill(r)
	case l.stream.cfg.Counting == Nothing:
	case l.numbersDecide():
		r.Numbered = true
		l.byNumber.fill(r)
	default:
		l.clock.fill(r)
	}
	if l.extra != nil {
		r.Add(l.extra.Counts)
	}
}

// SteadySums are the sums of a client whose first stream is open and has no fault, as with most clients.
type SteadySums struct {
	Received, Undetectable uint64
	LastAt                 Instant
}

// Steady returns the sums of a steady client; ok is false for any other client. Steady takes a third of the time of
// Sums, and is called on every ledger once a second.
func (l *Ledger) Steady() (s SteadySums, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream.cfg.Counting != Noops || !l.stream.open || l.stream.count != 1 || l.extra != nil || l.state != Open {
		return s, false
	}
	if n := l.byNumber; l.clock.faults != nil || n != nil && (n.faults != nil || n.numbers.lostCount() > 0) {
		return s, false // either count may decide later
	}
	c := l.counterOf(l.numbersDecide())
	return SteadySums{Received: c.Received, Undetectable: uint64(c.Undetectable), LastAt: c.lastAt}, true
}
