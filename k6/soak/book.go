package soak

import (
	"bytes"
	"strconv"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/k6/sse"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// A book passes what an EventSource observes to the ledger of one connection. Its methods are called by
// the goroutine that reads the stream; no JavaScript runs.
type book struct {
	ledger   *ledger.Ledger
	recorder *recorder
	outlet   *outlet // nil: no metrics are published
	held     bool
	openedAt time.Time // until the first noop, then zero
	other    string    // name of the last event that was no noop
}

var _ sse.Observer = (*book)(nil)

func (b *book) Connecting(at time.Time) {
	b.ledger.Connecting(b.recorder.instant(at))
	if b.outlet != nil {
		b.recorder.publisher.begun(b.outlet)
	}
}

func (b *book) Opened(at time.Time) {
	b.held, b.openedAt = true, at
	b.recorder.opened(b.ledger.Opened(b.recorder.instant(at)))
}

func (b *book) Event(at time.Time, e *eventstream.Event) {
	instant := b.recorder.instant(at)
	var number uint64
	var otherID bool
	if e.HasID {
		number = decimal(e.ID)
		otherID = number == 0 && len(e.ID) > 0
	}
	if len(e.Name) > 0 && string(e.Name) != "message" {
		b.ledger.Message(instant, number)
		b.named(e.Name)
		return
	}
	n := ledger.Noop{At: instant, Number: number, OtherID: otherID, Intact: len(e.Data) == 1 && e.Data[0] == '0'}
	if !n.Intact {
		n.Data = excerpt(e.Data)
	}
	arrival := b.ledger.Noop(n)
	first := time.Duration(-1)
	if !b.openedAt.IsZero() {
		first, b.openedAt = at.Sub(b.openedAt), time.Time{}
	}
	latency, ok := sinceSent(e.Comment, b.recorder.start.Add(at.Sub(b.recorder.start)))
	b.recorder.noop(arrival, !arrival.Counted || !n.Intact, first, latency, ok)
}

// named counts an event that is no noop.
//
//go:noinline // rare, and not to grow the stack of a reading goroutine
func (b *book) named(name []byte) {
	if string(name) != b.other {
		b.other = b.recorder.eventName(name)
	}
	b.ledger.Named(b.other)
}

// excerpt is what a finding shows of a corrupted noop.
//
//go:noinline
func excerpt(data []byte) string { return string(data[:min(len(data), 64)]) }

func (b *book) Closed(at time.Time, c sse.Close) {
	ended := c.Reason == sse.ReasonServer || c.Reason == sse.ReasonTruncated || c.Reason == sse.ReasonReset
	if b.held {
		b.held = false
		b.recorder.closed()
	}
	reason := string(c.Reason)
	if c.Reason == sse.ReasonStatus {
		reason += " " + strconv.Itoa(c.Status)
	}
	b.ledger.Closed(b.recorder.instant(at), reason, ended, c.Retry >= 0)
	b.ledger.Explain(explanation(c))
	if b.outlet != nil {
		b.recorder.publisher.ended(b.outlet)
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
	return time.Duration(received.UnixMicro()-int64(us)) * time.Microsecond, true
}
