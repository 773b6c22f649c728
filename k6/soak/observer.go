package soak

import (
	"bytes"
	"strconv"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/k6/sse"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// An observer passes what an EventSource sees to the ledger of one connection. Its methods are called by
// the goroutine that reads the stream; no JavaScript runs.
type observer struct {
	ledger   *ledger.Ledger
	recorder *recorder
	sink     *sampleSink    // nil: no metrics are published
	openedAt ledger.Instant // until the first noop, then 0
	rare     *rareSights    // nil: none yet
	aside    bool           // the script does something to the stream, so that it tells nothing of those that are held
	open     bool
}

// rareSights are what few streams bring.
type rareSights struct {
	other string // name of the last event that was no noop
	coded *coded
}

var noRareSights rareSights

// rareSights are those of the observer, to be read.
func (o *observer) rareSights() *rareSights {
	if o.rare == nil {
		return &noRareSights
	}
	return o.rare
}

// rarely are the same, to be written.
func (o *observer) rarely() *rareSights {
	if o.rare == nil {
		o.rare = new(rareSights)
	}
	return o.rare
}

var _ sse.Observer = (*observer)(nil)

// own is the observer, whatever is around it.
func (o *observer) own() *observer { return o }

func (o *observer) now() ledger.Instant { return o.recorder.instant(time.Now()) }

// faultless is what the check of a script asks: all messages came. Of a stream of which nothing is counted it asks only
// whether it was held. Where no message of a stream had a number, the verdict tells a wrong description from wrong messages.
func (o *observer) faultless(r *ledger.Record) bool {
	switch o.ledger.Counting() {
	case ledger.Nothing:
		return r.State == ledger.Completed
	case ledger.Numbered: // only the publisher's account says what was owed
		sound, p := *r, o.recorder.thePlan()
		if p.AllowGaps { // and which gaps the service announced
			sound.Lost = 0
		}
		if !p.Published() && r.Received == 0 {
			sound.Corrupted -= sound.Unnumbered
		}
		return sound.Sound()
	case ledger.Noops:
	}
	return r.Faultless()
}

func (o *observer) Connecting(at time.Time) {
	o.ledger.Connecting(o.recorder.instant(at))
	if o.sink != nil {
		o.recorder.telemetry.begun(o.sink)
	}
}

func (o *observer) Opened(at time.Time) {
	o.open, o.openedAt = true, max(o.recorder.instant(at), 1)
	o.recorder.opened(o.ledger.Opened(o.recorder.instant(at)))
}

func (o *observer) Event(at time.Time, e *eventstream.Event) {
	instant := o.recorder.instant(at)
	var number uint64
	var otherID bool
	if e.HasID {
		number = decimal(e.ID)
		otherID = number == 0 && len(e.ID) > 0
	}
	if len(e.Name) > 0 && string(e.Name) != "message" {
		o.ledger.Message(instant, number)
		o.named(e.Name, o.recorder.known.Load())
		return
	}
	n := ledger.Noop{At: instant, Number: number, OtherID: otherID, Intact: len(e.Data) == 1 && e.Data[0] == '0'}
	if !n.Intact {
		n.Data = o.recorder.known.Load().excerpt(e.Data)
	}
	arrival := o.ledger.Noop(n)
	latency, ok := sinceSent(e.Comment, o.recorder.wall(at))
	o.recorder.noop(arrival, o.aside, !arrival.Counted || !n.Intact, o.firstAfter(at), latency, ok)
}

// firstAfter is how long after the headers of its stream the first message came, -1 for each other one. It is called once for
// each message.
func (o *observer) firstAfter(at time.Time) time.Duration {
	after := time.Duration(-1)
	if o.openedAt > 0 {
		after = o.recorder.instant(at) - o.openedAt
		o.openedAt = 0
	}
	if coded := o.rareSights().coded; coded != nil {
		coded.message(o.recorder, at, after)
	}
	return after
}

// named counts an event that is not a noop. Its name is recorded without the secrets of known.
//
//go:noinline // rare, and not to grow the stack of a reading goroutine
func (o *observer) named(name []byte, known *credentials) {
	rare := o.rarely()
	if string(name) != rare.other { // which is empty before the first: no such name is empty
		rare.other = o.recorder.eventName(name, known)
	}
	o.ledger.Named(rare.other)
}

// excerpt is what a finding shows of a corrupted noop.
//
//go:noinline
func excerpt(data []byte) string { return string(data[:min(len(data), 64)]) }

func (o *observer) Closed(at time.Time, c sse.Close) {
	ended := c.Reason == sse.ReasonServer || c.Reason == sse.ReasonTruncated || c.Reason == sse.ReasonReset
	if o.open {
		o.open = false
		o.recorder.closed()
	}
	reason := string(c.Reason)
	if c.Reason == sse.ReasonStatus {
		reason += " " + strconv.Itoa(c.Status)
	}
	o.ledger.Closed(o.recorder.instant(at), reason, ended, c.Retry >= 0)
	o.ledger.Explain(explanation(c, o.recorder.known.Load()))
	if o.sink != nil {
		o.recorder.telemetry.ended(o.sink)
	}
}

// decimal is the number that an id is, 0 if it is none.
func decimal(id []byte) uint64 {
	if len(id) == 0 || len(id) > 19 {
		return 0
	}
	var n uint64
	for _, c := range id {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

var sentMark = []byte("sent=")

// sinceSent reads the server's comment `sent=UNIX_MICROSECONDS` and returns how long before received
// that was.
func sinceSent(comment []byte, received time.Time) (time.Duration, bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(comment), sentMark)
	if !ok {
		return 0, false
	}
	us := decimal(rest)
	if us == 0 {
		return 0, false
	}
	return time.Duration(received.UnixMicro()-int64(us)) * time.Microsecond, true //nolint:gosec // G115: decimal reads at most 18 digits
}
