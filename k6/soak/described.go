package soak

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/k6/sse"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// described passes what an EventSource sees of a described service to the ledger of one connection. Like observer it is
// called by the goroutine that reads the stream.
type described struct {
	jsLedger
	service     *service.Service
	reader      *service.Reader
	credentials *credentials
	topic       int
	streams     int
	last        []byte    // the id that the next stream can go on behind; empty: none came
	pending     time.Time // when a comment line came that is a heartbeat, or part of the block that follows; zero: none
}

var (
	_ sse.BlockObserver  = (*described)(nil)
	_ sse.AnswerObserver = (*described)(nil)
	_ sse.HeadObserver   = (*described)(nil)
	_ sse.ResumeObserver = (*describedWithID)(nil)
)

// ownBlock is how long after a comment line a block with data may end and still be the one that the line is in. A
// heartbeat without a blank line behind it (Mercure's) is part of the next block, too, but stands there for longer.
const ownBlock = 500 * time.Millisecond

// Head looks for the service's word, in the headers of a stream that goes on, that messages are missing.
func (d *described) Head(header http.Header) {
	if d.streams > 0 && d.service.Resume.Missed(header, d.last) {
		d.ledger.Announced(d.now())
	}
	d.streams++
}

// Answered begins the time in which messages are owed, where the headers of the stream do not.
func (d *described) Answered(at time.Time, _ int) { d.ledger.Joined(d.recorder.instant(at)) }

// Comment notes a sign of life.
func (d *described) Comment(at time.Time, _ []byte) {
	d.endComment(at, ledger.ASign)
	if d.service.HeartbeatIsComment() {
		d.pending = at
	}
}

// endComment counts the pending comment line as a heartbeat, unless it is in the block that came now, and notes what
// that block is.
func (d *described) endComment(at time.Time, what ledger.Heard) {
	if !d.pending.IsZero() && (what == ledger.AHeartbeat || at.Sub(d.pending) >= ownBlock) {
		d.ledger.Heard(d.recorder.instant(d.pending), ledger.AHeartbeat)
	}
	d.pending = time.Time{}
	if what != ledger.AHeartbeat {
		d.ledger.Heard(d.recorder.instant(at), what)
	}
}

// Event does nothing: Block has told all of it.
func (d *described) Event(time.Time, *eventstream.Event) {}

// Block counts a block as what it is.
func (d *described) Block(at time.Time, b *eventstream.Block) {
	block := blockOf(&b.Event, b.HasData, b.HasComment)
	reading := d.reader.Read(&block)
	if b.HasID && d.service.Resume.Resumes() {
		d.keepID(at, b, &reading)
	}
	d.count(at, b, &block, &reading)
}

// keepID keeps the id of a block; an empty one leaves the client without an id to resume from.
func (d *described) keepID(at time.Time, b *eventstream.Block, reading *service.Reading) {
	switch had := len(d.last) > 0; {
	case !had && len(b.ID) > 0:
		d.ledger.IDReceived()
	case had && len(b.ID) == 0:
		d.ledger.IDReset(d.recorder.instant(at), d.eventName(b, reading))
	}
	d.last = append(d.last[:0], b.ID...)
}

// eventName describes a block as findings name it.
//
//go:noinline
func (d *described) eventName(b *eventstream.Block, reading *service.Reading) string {
	noun := "event"
	switch {
	case reading.Kind == service.Delivery && reading.Err == nil:
		return fmt.Sprintf("message %d", reading.Seq)
	case reading.Kind == service.Heartbeat:
		noun = "heartbeat"
	}
	if len(b.Name) == 0 {
		return noun + " without a name"
	}
	return fmt.Sprintf("%s %q", noun, d.credentials.excerpt(b.Name))
}

func (d *described) count(at time.Time, b *eventstream.Block, block *service.Block, reading *service.Reading) {
	if reading.Kind == service.Heartbeat {
		if d.pending.IsZero() {
			d.ledger.Heard(d.recorder.instant(at), ledger.AHeartbeat)
		} else {
			d.endComment(at, ledger.AHeartbeat)
		}
		return
	}
	if !d.pending.IsZero() {
		d.endComment(at, ledger.ASign)
	}
	switch reading.Kind {
	case service.Delivery:
		d.deliver(at, block, reading)
	case service.Gap:
		d.ledger.Heard(d.recorder.instant(at), ledger.ASign)
		d.ledger.Announced(d.recorder.instant(at))
	case service.Foreign:
		d.ledger.Heard(d.recorder.instant(at), ledger.AForeigner)
	case service.Stray:
		d.ledger.Strayed(d.recorder.instant(at), d.credentials.excerpt(block.Data))
	case service.Unmarked:
		d.other(at, b, ledger.AnUncheckedEvent)
	case service.Other:
		d.other(at, b, ledger.ABlock)
	case service.Heartbeat:
	}
}

// other counts a block that is no message of the run; its name helps to find out what it is.
//
//go:noinline
func (d *described) other(at time.Time, b *eventstream.Block, what ledger.Heard) {
	d.ledger.Heard(d.recorder.instant(at), what)
	if b.HasData && len(b.Name) > 0 {
		d.named(b.Name, d.credentials)
	}
}

func blockOf(e *eventstream.Event, hasData, hasComment bool) service.Block {
	return service.Block{
		Event: e.Name, Data: e.Data, Comment: e.Comment, ID: e.ID,
		HasData: hasData, HasComment: hasComment, HasID: e.HasID,
	}
}

// deliver counts a message.
func (d *described) deliver(at time.Time, b *service.Block, r *service.Reading) {
	instant := d.recorder.instant(at)
	var latency time.Duration
	if r.HasSentAt {
		latency = time.Duration(d.recorder.wall(at).UnixMicro()-r.SentAt) * time.Microsecond
	}
	first := d.firstAfter(at)
	if d.service.Message.Interval > 0 {
		d.ledger.Heard(instant, ledger.ASign)
		n := ledger.Noop{At: instant, Number: uint64(r.Seq), OtherID: r.Err == service.ErrNumber, Intact: r.Err == nil || r.Err == service.ErrMissing} //nolint:gosec // G115: a negative number fits no sequence
		if !n.Intact {
			n.Data = d.credentials.excerpt(b.Data)
		}
		arrival := d.ledger.Noop(n)
		d.recorder.noop(arrival, d.aside, !arrival.Counted || !n.Intact, first, latency, r.HasSentAt)
		return
	}
	if d.ledger.Counting() == ledger.Nothing {
		d.ledger.Heard(instant, ledger.AnUncheckedEvent)
		d.recorder.noop(ledger.Arrival{}, d.aside, false, first, latency, r.HasSentAt)
		return
	}
	m := ledger.Delivery{At: instant, Number: uint64(r.Seq), Unnumbered: !r.HasSeq, Timed: r.HasSentAt, Lateness: d.recorder.sinceSent(latency)} //nolint:gosec // G115: a negative number fits no sequence
	if r.Err != nil {
		m.Broken = r.Err.Error() + ": " + d.credentials.excerpt(b.Data)
	}
	arrival := d.ledger.Delivered(&m)
	ours := arrival.Counted && m.Broken == ""
	if ours && m.Timed {
		d.recorder.reached(d.topic, m.Number, m.Lateness)
	}
	d.recorder.noop(arrival, d.aside, !ours, first, latency, r.HasSentAt && m.Broken == "")
}

// Closed ends what is open with the stream.
func (d *described) Closed(at time.Time, c sse.Close) {
	if !d.pending.IsZero() {
		d.endComment(at, ledger.AHeartbeat)
	}
	d.jsLedger.Closed(at, d.credentials.told(at, c, d.streams))
}

// describedWithID is described for a service whose streams go on behind an id that is not in the field id.
type describedWithID struct{ described }

// Block remembers the id.
func (d *describedWithID) Block(at time.Time, b *eventstream.Block) {
	block := blockOf(&b.Event, b.HasData, b.HasComment)
	reading := d.reader.Read(&block)
	if len(reading.ID) > 0 {
		if len(d.last) == 0 {
			d.ledger.IDReceived()
		}
		d.last = append(d.last[:0], reading.ID...)
	}
	d.count(at, b, &block, &reading)
}

// LastEventID is the id of the last message.
func (d *describedWithID) LastEventID() string { return string(d.last) }
