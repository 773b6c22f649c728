// Package ledger keeps the books of one connection: which noops came, which did not,
// and when. It is pure accounting: no I/O, no goroutine, no clock of its own.
//
// Two independent books are kept, because each sees what the other cannot:
//
//   - numbers: noops that carry an `id:` of 1, 2, 3 … per device. A hole in the numbers
//     is a noop that was sent and lost on the way.
//   - slots: the clock. Every interval is a slot that owes one noop. A slot that stays
//     empty is a noop that never came, whether or not the server noticed.
//
// A noop that is merely late fills its slot by arriving early against the next one, so
// lateness is never taken for loss; see slots.
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
	// Late is the lateness above which a noop is counted as late; it is also how long before
	// the end of a stream a noop may be due and still be on its way (at most half an interval).
	Late time.Duration

	// What the streams of the run say of its service's ids: that they are a sequence, or not.
	sequences, others atomic.Int64
}

func (c *Config) tolerance() time.Duration { return min(c.Late, c.Interval/2) }

// State is where a connection is in its life.
type State string

// The states of a connection. Completed is the only good end.
const (
	Planned    State = "planned"    // nothing was tried yet
	Connecting State = "connecting" // a first dial is under way
	Open       State = "open"       // a stream is held
	Waiting    State = "waiting"    // a stream was lost, a reconnect follows
	Completed  State = "completed"  // the server ended the stream because it was asked to
	Dropped    State = "dropped"    // the stream ended before anyone asked for it
	Refused    State = "refused"    // no stream was ever opened
	Unfinished State = "unfinished" // the client gave up: interrupted, or no end after the request for it
)

// Reasons for an end that came from the client, as Closed is told them.
const (
	ReasonClient      = "client"      // the script closed the stream
	ReasonInterrupted = "interrupted" // the run was stopped
)

// ReasonNoAnswer is why a connection was refused whose first dial was still under way at its end.
const ReasonNoAnswer = "no answer before the end"

// Bounds on what one connection may remember: a ledger never grows with time.
const (
	maxFindings     = 16
	maxLateFindings = 4 // of these: lateness is common, and must not crowd out a loss
	maxOutages      = 16
	maxReasons      = 16 // for which attempts failed
)

// A Ledger is the account of one device id over all its streams. The zero value is not
// usable; see New. All methods may be called from any goroutine.
type Ledger struct {
	mu  sync.Mutex
	rec Record // but for what the books count

	life
	clock      clockBook
	byNumber   *numberBook // nil: no noop had a number yet, or foreignIDs
	foreignIDs bool        // ids are no numbers of this connection
	says       opinion     // of the ids

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

// Opened notes that the headers of a good response are complete: the gap clock starts here,
// not at the dial. It returns how long the connect took, from the first dial since the last stream.
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

// AskedToEnd notes that the server is now being asked to end the stream: from here on its
// end is what was wanted, and no further noop is owed.
func (l *Ledger) AskedToEnd(at Instant) {
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

// Closed notes the end of a stream or of an attempt to open one. clean says that the server
// ended the stream in order; reason is the word for it in reports; again says that the client
// is going to reconnect.
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

// closeBooks settles what the clock has left open at the end of the last stream.
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

// Undecided is for how long from now on it cannot be told whether the noop of the present slot is
// lost or on its way; 0 where nothing is due. Who asks for the end only after that leaves nothing
// undecided at the end.
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
	within := l.cfg.tolerance() + share(l.cfg.Interval, aboutDue)
	due := b.slots.nextDue(at-within, b.lastAt, l.cfg.Interval)
	if at < due-within/4 {
		return 0
	}
	return due + within - at
}

// Record is a copy of the account as it stands.
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

// Sums is Record without its lists: cheap enough to ask of every ledger once a second.
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
