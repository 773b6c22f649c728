package soak

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// An observer passes what arrives on the streams of one client to its ledger, as the service description reads it. Its
// methods are called by the goroutine that reads the stream; no JavaScript runs.
type observer struct {
	ledger      *ledger.Ledger
	recorder    *recorder
	topic       *topicReader
	sink        *sampleSink    // nil: no metrics are published
	lastAt      ledger.Instant // of the last message, or of the headers before the first one
	rare        *rareState     // nil: none yet
	previousGap uint32         // see shard.Bursts; or one of these
	streams     uint16         // whose headers arrived; the highest number stands for more
	excluded    bool           // the script acts on the stream, so it is not evidence about untouched streams
	open        bool
}

// Until a message arrives that is not together with the first one of its stream, before is one of these. The first ones may be what a
// service repeats.
const (
	noMessageYet = math.MaxUint32 - iota
	inHistory
)

// A topicReader reads the messages of one topic.
type topicReader struct {
	*service.Reader
	service *service.Service
	number  int
	log     *ledger.Log // of messages without numbers; nil: they carry numbers
	// keepsIDs reports whether the id to resume from matters to the counts; silences whether comments and heartbeats do.
	keepsIDs, silences bool
}

// rareState is state that few streams need.
type rareState struct {
	lastName    string // name of the last event that was not a message
	coded       *coded
	last        []byte                               // the id to resume from; empty: none arrived
	pending     time.Time                            // arrival of a comment line that is a heartbeat, or part of the next block; zero: none
	credentials *credentials                         // nil: those of all streams
	listener    func(at time.Time, b *service.Block) // of events that the description does not define; nil: none
}

var noRareState rareState

// readRareState returns the rare state of the observer, for reading.
func (o *observer) readRareState() *rareState {
	if o.rare == nil {
		return &noRareState
	}
	return o.rare
}

// writableRareState returns the mutable rare state, allocated on first use.
func (o *observer) writableRareState() *rareState {
	if o.rare == nil {
		o.rare = new(rareState)
	}
	return o.rare
}

// Callbacks returns what reports a stream to its ledger.
func (o *observer) Callbacks() sseclient.Callbacks {
	on := sseclient.Callbacks{
		Connecting: o.connecting, Opened: o.opened, Event: o.event, Block: o.block, Comment: o.comment, Answered: o.answered,
		Closed: o.closed,
	}
	if o.topic.service.Resume.SendsReadingID {
		on.LastEventID = func() string { return string(o.readRareState().last) }
	}
	if o.recorder.cuts() {
		on.Cuttable, on.Cut, on.Resumed = o.cuttable, o.cut, o.resumed
	}
	return on
}

// commentInBlock is how long after a comment line a block with data may end and still be the one that the line is in. A
// heartbeat without a blank line behind it (Mercure's) is part of the next block, too, but stands there for longer.
const commentInBlock = 500 * time.Millisecond

func (o *observer) now() ledger.Instant { return o.recorder.instant(time.Now()) }

// credentials returns the secrets that findings of the stream must not show.
func (o *observer) credentials() *credentials {
	if ownSecrets := o.readRareState().credentials; ownSecrets != nil {
		return ownSecrets
	}
	return o.recorder.credentials.Load()
}

func (o *observer) authorize(c *credentials) { o.writableRareState().credentials = c }

// faultless reports the result of a script's check: all messages arrived. If nothing is counted on a stream, it
// reports whether the stream stayed open. If no message of a stream had a number, the verdict distinguishes a wrong
// description from wrong messages.
func (o *observer) faultless(r *ledger.Record) bool {
	switch o.ledger.Counting() {
	case ledger.Nothing:
		return r.State == ledger.Completed
	case ledger.Numbered: // only the publisher's log has the expected messages
		faultless, p := *r, o.recorder.thePlan()
		if p.AllowGaps { // and which gaps the service announced
			faultless.Lost = 0
		}
		if o.topic.log != nil { // and which messages are copies, only the comparison of all clients shows
			faultless.Duplicated, faultless.Reordered = 0, 0
		}
		if !p.Published() && r.Received == 0 {
			faultless.Corrupted -= faultless.Unnumbered
		}
		return faultless.HasNoFault()
	case ledger.Noops:
	}
	return r.Faultless()
}

func (o *observer) connecting(at time.Time) {
	o.ledger.Connecting(o.recorder.instant(at))
	if o.sink != nil {
		o.recorder.telemetry.start(o.sink)
	}
}

// opened records an open stream. The headers of a resumed one may announce that messages are missing.
func (o *observer) opened(_ time.Time, r *sseclient.Response) {
	if o.streams > 0 && o.topic.service.Resume.Missed(r.Header, o.readRareState().last) {
		o.ledger.Announced(o.now())
	}
	o.streams = max(o.streams, o.streams+1) // it does not wrap
	if coding := r.Coding(); coding != "" {
		o.beginCoded(coding)
	}
	if server := r.Header.Get("Server"); server != "" {
		o.recorder.addServer(server)
	}
	if r.OtherOrigin {
		o.recorder.redirected(sseclient.Origin(r.URL))
	}
	if r.HTTP2 {
		o.recorder.sharedStream(r.FirstOnConnection)
	}
	at := o.recorder.instant(r.At)
	o.open, o.previousGap, o.lastAt = true, noMessageYet, at
	o.recorder.opened(o.ledger.Opened(at))
}

// answered begins the time in which messages are expected, if the headers of the stream do not.
func (o *observer) answered(at time.Time, _ *sseclient.Response) {
	o.ledger.Joined(o.recorder.instant(at))
}

// comment records a sign of life.
func (o *observer) comment(at time.Time, _ []byte) {
	if !o.topic.silences {
		return
	}
	o.endComment(at, ledger.UncountedSign)
	if o.topic.service.HeartbeatIsComment() {
		o.writableRareState().pending = at
	}
}

// endComment counts the pending comment line as a heartbeat, unless it is part of the present block, and records the
// kind of that block.
func (o *observer) endComment(at time.Time, end ledger.SignOfLife) {
	if pending := o.readRareState().pending; !pending.IsZero() {
		if end == ledger.HeartbeatSign || at.Sub(pending) >= commentInBlock {
			o.ledger.RecordSign(o.recorder.instant(pending), ledger.HeartbeatSign)
		}
		o.rare.pending = time.Time{}
	}
	if end != ledger.HeartbeatSign {
		o.ledger.RecordSign(o.recorder.instant(at), end)
	}
}

// block counts a block without data, which dispatches no event.
func (o *observer) block(at time.Time, b *eventstream.Block) {
	if !b.HasData {
		o.classify(at, &b.Event, false, b.HasComment)
	}
}

// event counts a block with data.
func (o *observer) event(at time.Time, e *eventstream.Event) {
	o.classify(at, e, true, len(e.Comment) > 0)
}

// classify counts a block as the message, heartbeat or other block of the description.
func (o *observer) classify(at time.Time, e *eventstream.Event, hasData, hasComment bool) {
	block := blockOf(e, hasData, hasComment)
	reading := o.topic.Read(&block)
	if o.topic.keepsIDs {
		o.keepID(at, &block, &reading)
	}
	if !o.readRareState().pending.IsZero() {
		if reading.Kind == service.Heartbeat {
			o.endComment(at, ledger.HeartbeatSign)
			return
		}
		o.endComment(at, ledger.UncountedSign)
	}
	switch reading.Kind {
	case service.Delivery:
		o.deliver(at, &block, &reading)
	case service.Other:
		o.otherEvent(at, &block, &reading)
	default:
		o.countOther(at, &block, reading.Kind)
	}
}

// countOther counts a block that is not a message of the stream.
func (o *observer) countOther(at time.Time, block *service.Block, kind service.Kind) {
	instant := o.recorder.instant(at)
	switch kind {
	case service.Heartbeat:
		o.ledger.RecordSign(instant, ledger.HeartbeatSign)
	case service.Gap:
		o.ledger.RecordSign(instant, ledger.UncountedSign)
		o.ledger.Announced(instant)
	case service.Foreign:
		o.ledger.RecordSign(instant, ledger.ForeignSign)
	case service.OtherTopic:
		o.ledger.Misrouted(instant, o.credentials().excerpt(block.Data))
	case service.Unmarked:
		o.ledger.RecordSign(instant, ledger.UncheckedSign)
		o.countName(block)
	case service.Delivery, service.Other:
	}
}

// otherEvent counts a block that the description does not define. With message.every only events count: they may use a number.
//
//go:noinline
func (o *observer) otherEvent(at time.Time, block *service.Block, reading *service.Reading) {
	if o.ledger.Counting() == ledger.Noops {
		if !block.HasData {
			return
		}
		o.ledger.Message(o.recorder.instant(at), uint64(reading.Seq)) // #nosec G115 -- it is not negative
	}
	o.ledger.RecordSign(o.recorder.instant(at), ledger.UnknownBlockSign)
	o.countName(block)
	if listener := o.readRareState().listener; listener != nil {
		listener(at, block)
	}
}

// keepID keeps the id to resume from; an empty one leaves the client without.
func (o *observer) keepID(at time.Time, b *service.Block, reading *service.Reading) {
	id, has := b.ID, b.HasID
	if o.topic.service.Resume.SendsReadingID {
		id, has = reading.ID, len(reading.ID) > 0
	}
	if !has {
		return
	}
	rare := o.writableRareState()
	switch hadLast := len(rare.last) > 0; {
	case !hadLast && len(id) > 0:
		o.ledger.IDReceived()
	case hadLast && len(id) == 0:
		o.ledger.IDReset(o.recorder.instant(at), o.eventName(b, reading))
	}
	rare.last = append(rare.last[:0], id...)
}

// eventName describes a block as findings name it.
//
//go:noinline
func (o *observer) eventName(b *service.Block, reading *service.Reading) string {
	noun := "event"
	switch {
	case reading.Kind == service.Delivery && reading.Err == nil:
		return fmt.Sprintf("message %d", reading.Seq)
	case reading.Kind == service.Heartbeat:
		noun = "heartbeat"
	}
	if len(b.Event) == 0 {
		return noun + " without a name"
	}
	return fmt.Sprintf("%s %q", noun, o.credentials().excerpt(b.Event))
}

func blockOf(e *eventstream.Event, hasData, hasComment bool) service.Block {
	return service.Block{
		Event: e.Name, Data: e.Data, Comment: e.Comment, ID: e.ID,
		HasData: hasData, HasComment: hasComment, HasID: e.HasID,
	}
}

// deliver counts a message.
func (o *observer) deliver(at time.Time, b *service.Block, r *service.Reading) {
	instant := o.recorder.instant(at)
	var latency time.Duration
	if r.HasSentAt {
		latency = time.Duration(o.recorder.wall(at).UnixMicro()-r.SentAt) * time.Microsecond
	}
	first := o.firstAfter(at)
	switch o.ledger.Counting() {
	case ledger.Nothing:
		o.ledger.RecordSign(instant, ledger.UncheckedSign)
		o.recorder.noop(ledger.Arrival{}, o.excluded, false, first, latency, r.HasSentAt)
		return
	case ledger.Noops:
		if o.topic.silences {
			o.ledger.RecordSign(instant, ledger.UncountedSign)
		}
		n := ledger.Noop{At: instant, Number: uint64(r.Seq), OtherID: r.OtherID || r.Err == service.ErrNumber, Intact: r.Err == nil || r.Err == service.ErrMissing} // #nosec G115 -- a negative number fits no sequence
		if !n.Intact {
			n.Data = o.credentials().excerpt(b.Data)
		}
		arrival := o.ledger.Noop(n)
		o.recorder.noop(arrival, o.excluded, !arrival.Counted || !n.Intact, first, latency, r.HasSentAt)
		return
	case ledger.Numbered:
	}
	if o.topic.log != nil {
		arrival := o.ledger.Printed(ledger.Print{At: instant, Sum: r.Print})
		o.recorder.noop(arrival, o.excluded, !arrival.Counted, first, latency, r.HasSentAt)
		return
	}
	m := ledger.Delivery{At: instant, Number: uint64(r.Seq), Unnumbered: !r.HasSeq, Timed: r.HasSentAt, Lateness: o.recorder.sinceSent(latency)} // #nosec G115 -- a negative number fits no sequence
	if r.Err != nil {
		m.Broken = r.Err.Error() + ": " + o.credentials().excerpt(b.Data)
	}
	arrival := o.ledger.Delivered(&m)
	counted := arrival.Counted && m.Broken == ""
	if counted && m.Timed {
		o.recorder.reached(o.topic.number, m.Number, m.Lateness)
	}
	o.recorder.noop(arrival, o.excluded, !counted, first, latency, r.HasSentAt && m.Broken == "")
}

// firstAfter returns how long after the headers of its stream the first message came, -1 for each other one, which it counts by the
// time since the message before. It is called once for each message.
func (o *observer) firstAfter(at time.Time) time.Duration {
	after := time.Duration(-1)
	gap := o.recorder.instant(at) - o.lastAt
	o.lastAt += gap
	switch {
	case o.previousGap == noMessageYet:
		after, o.previousGap = max(gap, 0), inHistory
	case o.previousGap == inHistory && gap < ledger.TogetherLimit || o.excluded:
	default:
		o.recorder.addGap(gap, &o.previousGap)
	}
	if coded := o.readRareState().coded; coded != nil {
		coded.message(o.recorder, at, after)
	}
	return after
}

// countName counts an event that is not a message by its name, which is recorded without secrets.
//
//go:noinline // rare, and not to grow the stack of a reading goroutine
func (o *observer) countName(b *service.Block) {
	if !b.HasData || len(b.Event) == 0 {
		return
	}
	rare := o.writableRareState()
	if string(b.Event) != rare.lastName { // which is empty before the first: no such name is empty
		rare.lastName = o.recorder.eventName(b.Event, o.credentials())
	}
	o.ledger.Named(rare.lastName)
}

// closed ends what is open with the stream.
func (o *observer) closed(at time.Time, c sseclient.Close) {
	if !o.readRareState().pending.IsZero() {
		o.endComment(at, ledger.HeartbeatSign)
	}
	c = o.credentials().recordEnd(at, c, int(o.streams))
	ended := c.Reason == sseclient.ReasonServer || c.Reason == sseclient.ReasonTruncated || c.Reason == sseclient.ReasonReset
	if o.open {
		o.open = false
		o.recorder.closed()
	}
	reason := string(c.Reason)
	if c.Reason == sseclient.ReasonStatus {
		reason += " " + strconv.Itoa(c.Status)
	}
	o.ledger.Closed(o.recorder.instant(at), reason, ended, c.Retry >= 0)
	o.ledger.Explain(explanation(c, o.recorder.credentials.Load()))
	if o.sink != nil {
		o.recorder.telemetry.ended(o.sink)
	}
}
