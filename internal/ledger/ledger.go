// Package ledger counts the noops of one connection: which came, which did not, and when. It does
// no I/O, starts no goroutine and reads no clock.
//
// Noops are counted twice, because each count sees what the other cannot:
//
//   - by number, where they carry an `id:` of 1, 2, 3 … per device (numberBook). A hole in the
//     numbers is a noop that was sent and lost on the way.
//   - by the clock (clockBook). Every interval has a slot, in which one noop is owed. A slot that
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

	// How many streams of the runner take the service's ids for a sequence, and how many do not.
	sequences, others atomic.Int64
}

func (c *Config) tolerance() time.Duration { return min(c.Late, c.Interval/2) }

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
	rec Record // without the counts of clock and byNumber

	life
	clock      clockBook
	byNumber   *numberBook // from the start, for what happens before the first noop; nil: noops have no numbers
	foreignIDs bool        // the ids do not number the noops of this connection
	says       opinion     // what this stream has told the others about the ids

	streamOpen bool    // a stream is open now
	dialing    bool    // an attempt is under way
	connecting bool    // a dial was made since the last stream
	connectAt  Instant // the first of these
	without    bool    // there is an outage
	outage     Outage  // the present one
}

// New returns the ledger of one device id. cfg is kept, not copied: one for all ledgers.
func New(id string, cfg *Config) *Ledger {
	l := &Ledger{life: life{cfg: cfg}, rec: Record{ID: id, State: Planned}}
	l.clock.life = &l.life
	l.byNumber = &numberBook{book: book{life: &l.life}}
	return l
}

// ID is the device id.
func (l *Ledger) ID() string { return l.rec.ID }

// Connecting notes that a dial begins.
func (l *Ledger) Connecting(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.Attempts == 0 && l.endAskedAt == 0 {
		l.leave(at)
	}
	if !l.connecting {
		l.connecting, l.connectAt = true, at
	}
	l.dialing = true
	l.rec.Attempts++
	if l.rec.Streams == 0 && l.rec.State != Refused {
		l.rec.State = Connecting
	}
}

// Opened notes that the headers of a good response are complete: the first noop is awaited from
// here on, not from the dial. It returns how long the connect took, from the first dial since the last
// stream.
func (l *Ledger) Opened(at Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := at - l.connectAt
	l.rec.Streams++
	o, out := l.comeBack(at)
	switch {
	case l.rec.Streams == 1:
		l.rec.OpenedAt, l.rec.Connect = at, took
	case out:
		l.rec.survived(o)
	}
	l.rec.State = Open
	l.dialing, l.connecting = false, false
	l.streamOpen = true
	l.streams, l.openedAt = l.rec.Streams, at
	l.clock.opened(at)
	if l.byNumber != nil {
		l.byNumber.opened(at)
	}
	return took
}

// CloseRequested notes that the server is now being asked to end the stream. From here on no further noop
// is owed, and the end of the stream is no drop.
func (l *Ledger) CloseRequested(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endAskedAt != 0 {
		return
	}
	l.endAskedAt = max(at, 1)
	l.comeBack(at)
	if l.rec.State == Connecting && !l.dialing { // between two attempts, and none follows
		l.refuse(at, l.rec.Reason)
	}
}

// Closed notes the end of a stream or of an attempt to open one. clean: the server ended the stream.
// reason is its name in reports. again: the client is going to reconnect.
func (l *Ledger) Closed(at Instant, reason string, clean, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.endAskedAt != 0
	l.dialing = false
	if l.streamOpen {
		l.streamOpen = false
		l.rec.Held += at - l.openedAt
		l.rec.Open += max(l.end(at)-l.openedAt, 0)
		l.rec.ClosedAt = at
		if again && !asked {
			l.lose(at)
		}
	} else {
		l.attemptFailed(at, reason)
	}
	if !again {
		l.comeBack(at)
	}
	l.rec.Reason = reason
	switch {
	case again && !asked:
		if l.rec.Streams > 0 {
			l.rec.State = Waiting
		}
	case l.rec.Streams == 0:
		l.refuse(at, reason)
	case asked && clean && l.rec.State == Open:
		l.rec.State = Completed
		l.closeBooks(l.end(at))
	case l.rec.State == Open && (asked || reason == ReasonClient || reason == ReasonInterrupted):
		l.rec.State = Unfinished
		l.closeBooks(l.end(at))
	default:
		l.closeBooks(l.end(at))
		l.rec.State = Dropped
		l.rec.find(Finding{Kind: KindDropped, At: at, Note: reason})
	}
}

// lose notes that the stream is lost, and another follows.
func (l *Ledger) lose(at Instant) {
	l.leave(at)
	l.clock.lose()
	if l.byNumber != nil {
		l.byNumber.lose(at)
	}
}

// closeBooks ends both counts with the last stream: slots that are still in doubt are missed.
func (l *Ledger) closeBooks(end Instant) {
	l.clock.close(end)
	if l.byNumber != nil {
		l.byNumber.close(end)
	}
}

// end is the last moment of the stream at which a noop could still be owed.
func (l *Ledger) end(at Instant) Instant {
	if l.endAskedAt != 0 {
		return min(at, l.endAskedAt)
	}
	return at
}

// Undecided is how long it will still be unknown whether the noop of the present slot is lost or on its
// way; 0 if none is due. A script that waits for that long before it requests the end leaves no noop
// undecided.
func (l *Ledger) Undecided(at Instant) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.clock.book
	if n, ok := l.decides(); ok {
		b = &n.book
	}
	if !l.streamOpen || !b.sawNoop {
		return 0
	}
	if burst := b.lastAt + l.cfg.Interval/2; b.slots.balance > 0 && at < burst {
		return burst - at // what was held up with the last noop may be right behind it
	}
	within := b.slots.tolerance(l.cfg.tolerance(), l.cfg.Interval) + share(l.cfg.Interval, aboutDue)
	due := b.slots.nextDue(at-within, b.lastAt, l.cfg.Interval)
	if at < due-within/4 {
		return 0
	}
	return due + within - at
}

// Record is a copy of all counts and findings so far.
func (l *Ledger) Record() Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rec
	r.Outages = append([]Outage(nil), l.rec.Outages...)
	r.Others = append([]EventCount(nil), l.rec.Others...)
	r.Refusals = append([]Refusal(nil), l.rec.Refusals...)
	common := l.rec.Findings
	r.Findings = nil
	of := &l.clock.book
	if b, ok := l.decides(); ok {
		r.Numbered, of = true, &b.book
		b.fill(&r)
		for _, h := range b.numbers.holes {
			r.find(Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.to - h.from + 1, At: h.at})
		}
	} else {
		l.clock.fill(&r)
	}
	r.Unlisted += of.unlisted
	for _, f := range slices.Concat(of.findings, common) {
		r.find(f)
	}
	return r
}

// Sums is Record without its lists: cheap enough to call on every ledger once a second.
func (l *Ledger) Sums() Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rec
	r.Findings, r.Outages, r.Refusals, r.Others = nil, nil, nil, nil
	if b, ok := l.decides(); ok {
		r.Numbered = true
		b.fill(&r)
	} else {
		l.clock.fill(&r)
	}
	return r
}
