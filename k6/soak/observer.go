package soak

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/k6/network"
)

// An observer classifies the blocks on the streams of one client according to the service description, and counts them
// in the ledger. The SSE client calls the callbacks in Go, without JavaScript.
type observer struct {
	ledger      *ledger.Ledger
	recorder    *recorder
	topic       *topicReader
	sink        *sampleSink    // nil: no metrics are published
	lastArrival ledger.Instant // of the last message, or of the headers before the first message
	previousGap uint32         // see shard.Bursts; or noMessageYet or firstBurst
	streams     uint8          // streams whose headers arrived; the maximum means at least that many
	excluded    bool           // the script acts on the stream, so it is not evidence about undisturbed streams
	open        bool           // headers have arrived, and the stream has not ended
	hasSource   bool           // a source of a script uses the ledger; see jsLedger.Callbacks

	lastName  string // name of the last event that was not a message
	coding    *codedStream
	resumeID  []byte                               // id to resume from; empty: none
	commentAt ledger.Instant                       // arrival of a comment line that may be a heartbeat; 0: none
	override  *credentials                         // nil: the default credentials
	listener  func(at time.Time, b *service.Block) // gets events that the description does not define; nil: none
}

// Values of previousGap at the start of a stream: before its first message, and while messages arrive together with the
// first one. These messages may be a replay.
const (
	noMessageYet = math.MaxUint32 - iota
	firstBurst
)

type topicReader struct {
	*service.Reader
	service *service.Service
	number  int
	log     *ledger.Log // of messages without numbers that all clients share; nil for other messages
	// keepsIDs reports whether the counts depend on the id to resume from. tracksSilence reports whether they depend
	// on comments and heartbeats.
	keepsIDs, tracksSilence bool
}

// Callbacks returns the callbacks that record a stream in its ledger.
func (o *observer) Callbacks() sseclient.Callbacks {
	return o.recorder.callbacks(func(*sseclient.Stream) *observer { return o })
}

func (r *recorder) callbacks(observerOf func(*sseclient.Stream) *observer) sseclient.Callbacks {
	callbacks := sseclient.Callbacks{
		Connecting: func(s *sseclient.Stream, at time.Time) { observerOf(s).connecting(at) },
		Opened:     forward(observerOf, (*observer).opened), Block: forward(observerOf, (*observer).block), Closed: forward(observerOf, (*observer).closed),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.config.IgnoresSilence {
		callbacks.Comment = forward(observerOf, (*observer).comment)
	}
	if r.service.SecondRequest != nil {
		callbacks.Answered = forward(observerOf, (*observer).answered)
	}
	if r.service.Resume.SendsReadingID {
		callbacks.LastEventID = func(s *sseclient.Stream) string { return string(observerOf(s).resumeID) }
	}
	if r.cutter != nil {
		callbacks.Cuttable = func(s *sseclient.Stream) bool { return observerOf(s).addToCutter(s) }
		callbacks.Cut, callbacks.Resumed = forward(observerOf, (*observer).cut), forward(observerOf, (*observer).resumed)
	}
	return callbacks
}

// forward returns a callback that calls a method of the value of the stream.
func forward[V, T any](valueOf func(*sseclient.Stream) V, method func(V, time.Time, T)) func(*sseclient.Stream, time.Time, T) {
	return func(s *sseclient.Stream, at time.Time, value T) { method(valueOf(s), at, value) }
}

// commentBlockTimeout is the time within which the block of a comment line must end; otherwise the line is a heartbeat.
// A heartbeat without a blank line, as in Mercure, is formally the start of the next block, which ends much later.
const commentBlockTimeout = 500 * time.Millisecond

func (o *observer) now() ledger.Instant { return o.recorder.instant(time.Now()) }

// credentials returns the secrets that findings of the stream must not show.
func (o *observer) credentials() *credentials {
	if c := o.override; c != nil {
		return c
	}
	return o.recorder.credentials.Load()
}

// passesCheck reports whether a client passes the check "Received all messages": no message is missing or faulty. If no
// messages are counted, the stream must have ended as planned. passesCheck ignores faults that only the merge or the
// verdict can detect.
func (o *observer) passesCheck(r *ledger.Record) bool {
	switch o.ledger.Counting() {
	case ledger.Nothing:
		return r.State == ledger.Completed
	case ledger.Numbered: // only the merge compares the messages with the publisher's log
		record, p := *r, o.recorder.planCopy()
		if p.AllowGaps { // the merge knows the gaps that the service announced
			record.Lost = 0
		}
		if o.topic.log != nil { // the merge detects duplicates by comparing all clients
			record.Duplicated, record.Reordered = 0, 0
		}
		if !p.Published() && r.Received == 0 {
			record.Corrupted -= record.Unnumbered
		}
		return record.HasNoFault()
	case ledger.Noops:
	}
	return r.ReceivedWithoutFault()
}

// connecting records the start of an attempt. It keeps the sample sink open until closed is called.
func (o *observer) connecting(at time.Time) {
	o.ledger.Connecting(o.recorder.instant(at))
	if o.sink != nil {
		o.recorder.telemetry.start(o.sink)
	}
}

// opened records an open stream. The headers after a reconnect may announce missing messages.
func (o *observer) opened(_ time.Time, r *sseclient.Response) {
	if o.streams > 0 && o.topic.service.Resume.Missed(r.Header, o.resumeID) {
		o.ledger.Announced(o.now())
	}
	o.streams = max(o.streams, o.streams+1) // does not overflow
	if coding := r.Coding(); coding != "" {
		o.startCoding(coding)
	}
	at := o.recorder.instant(r.At)
	o.open, o.previousGap, o.lastArrival = true, noMessageYet, at
	o.recorder.addStream(o.ledger.Opened(at), r)
}

// answered records the response to the second request. From then on, messages of the stream are expected.
func (o *observer) answered(at time.Time, _ *sseclient.Response) {
	o.ledger.SubscribedFrom(o.recorder.instant(at))
}

// comment records a comment line as a sign of life, and keeps it as a possible heartbeat if heartbeats are comments.
func (o *observer) comment(at time.Time, _ []byte) {
	o.endComment(at, ledger.OtherSign)
	if o.topic.service.HeartbeatIsComment() {
		o.commentAt = o.recorder.instant(at)
	}
}

// endComment records the last comment line as a heartbeat if end is HeartbeatSign, or if the line arrived at least
// commentBlockTimeout before at. It also records end, unless end is HeartbeatSign.
func (o *observer) endComment(at time.Time, end ledger.SignOfLife) {
	if o.commentAt != 0 {
		if end == ledger.HeartbeatSign || o.recorder.instant(at)-o.commentAt >= commentBlockTimeout {
			o.ledger.RecordSign(o.commentAt, ledger.HeartbeatSign)
		}
		o.commentAt = 0
	}
	if end != ledger.HeartbeatSign {
		o.ledger.RecordSign(o.recorder.instant(at), end)
	}
}

func (o *observer) block(at time.Time, b *eventstream.Block) {
	block := blockOf(&b.Event, b.HasData, b.HasComment)
	reading := o.topic.Read(&block)
	if o.topic.keepsIDs {
		o.keepID(at, &block, &reading)
	}
	if o.commentAt != 0 {
		if reading.Kind == service.Heartbeat {
			o.endComment(at, ledger.HeartbeatSign)
			return
		}
		o.endComment(at, ledger.OtherSign)
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

func (o *observer) countOther(at time.Time, block *service.Block, kind service.Kind) {
	instant := o.recorder.instant(at)
	switch kind {
	case service.Heartbeat:
		o.ledger.RecordSign(instant, ledger.HeartbeatSign)
	case service.Gap:
		o.ledger.RecordSign(instant, ledger.OtherSign)
		o.ledger.Announced(instant)
	case service.Foreign:
		o.ledger.RecordSign(instant, ledger.ForeignSign)
	case service.OtherTopic:
		o.ledger.Misrouted(instant, o.credentials().excerpt(block.Data))
		o.recorder.addMisrouted()
	case service.Unmarked:
		o.ledger.RecordSign(instant, ledger.UncheckedSign)
		o.countName(block)
	case service.Delivery, service.Other:
	}
}

// otherEvent counts a block that the description does not define, and passes it to the listener. With message.every, it
// ignores blocks without data, and the number of any other block does not count as missing.
//
//go:noinline
func (o *observer) otherEvent(at time.Time, block *service.Block, reading *service.Reading) {
	if o.ledger.Counting() == ledger.Noops {
		if !block.HasData {
			return
		}
		o.ledger.NumberedEvent(o.recorder.instant(at), uint64(reading.Seq)) // #nosec G115 -- Seq is not negative
	}
	o.ledger.RecordSign(o.recorder.instant(at), ledger.UnknownBlockSign)
	o.countName(block)
	if listener := o.listener; listener != nil {
		event := *block // only this copy escapes to the heap
		listener(at, &event)
	}
}

// keepID stores the id to resume from. An empty id removes it. The ledger records the first id, each removal, and the
// next id after a removal.
func (o *observer) keepID(at time.Time, b *service.Block, reading *service.Reading) {
	id, hasID := b.ID, b.HasID
	if o.topic.service.Resume.SendsReadingID {
		id, hasID = reading.ID, len(reading.ID) > 0
	}
	if !hasID {
		return
	}
	switch hadID := len(o.resumeID) > 0; {
	case !hadID && len(id) > 0:
		o.ledger.IDReceived()
	case hadID && len(id) == 0:
		o.ledger.IDReset(o.recorder.instant(at), o.describeBlock(b, reading))
	}
	o.resumeID = append(o.resumeID[:0], id...)
}

// describeBlock returns a description of a block for findings, such as: message 7, or event "ping".
//
//go:noinline
func (o *observer) describeBlock(b *service.Block, reading *service.Reading) string {
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

// blockOf converts an event of the SSE client to a block for a service description, without a copy of its data.
func blockOf(e *eventstream.Event, hasData, hasComment bool) service.Block {
	return service.Block{
		Event: e.Name, Data: e.Data, Comment: e.Comment, ID: e.ID,
		HasData: hasData, HasComment: hasComment, HasID: e.HasID,
	}
}

func (o *observer) deliver(at time.Time, b *service.Block, r *service.Reading) {
	instant := o.recorder.instant(at)
	var latency time.Duration
	if r.HasSentAt {
		latency = time.Duration(o.recorder.wall(at).UnixMicro()-r.SentAt) * time.Microsecond
	}
	first := o.firstMessageDelay(at)
	var delta ledger.Delta
	hasLatency := r.HasSentAt
	switch counting := o.ledger.Counting(); {
	case counting == ledger.Nothing:
		o.ledger.RecordSign(instant, ledger.UncheckedSign)
	case counting == ledger.Noops:
		if o.topic.tracksSilence {
			o.ledger.RecordSign(instant, ledger.OtherSign)
		}
		n := ledger.Noop{At: instant, Number: uint64(r.Seq), OtherID: r.OtherID || r.Err == service.ErrNumber, Intact: r.Err == nil || r.Err == service.ErrMissing} // #nosec G115 -- a negative number fits no sequence
		if !n.Intact {
			n.Data = o.credentials().excerpt(b.Data)
		}
		delta = o.ledger.Noop(n)
	case o.topic.log != nil:
		delta = o.ledger.DeliveredUnnumbered(ledger.Fingerprint{At: instant, Sum: r.Fingerprint})
	default:
		m := ledger.Delivery{At: instant, Number: uint64(r.Seq), Unnumbered: !r.HasSeq, Timed: r.HasSentAt, Lateness: o.recorder.latenessOf(latency)} // #nosec G115 -- a negative number fits no sequence
		if r.Err != nil {
			m.CorruptionReason = r.Err.Error() + ": " + o.credentials().excerpt(b.Data)
		}
		delta = o.ledger.Delivered(&m)
		if hasLatency = m.Timed && m.CorruptionReason == ""; hasLatency && delta.Counted {
			o.recorder.noteReach(o.topic.number, m.Number, m.Lateness)
		}
	}
	o.recorder.addDelta(delta, o.excluded, first, latency, hasLatency)
}

// firstMessageDelay returns the time between the headers of a stream and its first message, and -1 for later messages.
// It counts the gap before a later message, except in the first burst and on an excluded stream. It passes the message
// to the codedStream. It must be called once per message.
func (o *observer) firstMessageDelay(at time.Time) time.Duration {
	delay := time.Duration(-1)
	gap := o.recorder.instant(at) - o.lastArrival
	o.lastArrival += gap
	switch {
	case o.previousGap == noMessageYet:
		delay, o.previousGap = max(gap, 0), firstBurst
	case o.previousGap == firstBurst && gap < ledger.TogetherLimit || o.excluded:
	default:
		o.recorder.addGap(gap, &o.previousGap)
	}
	if o.coding != nil {
		o.coding.message(o.recorder, at, delay)
	}
	return delay
}

// countName counts an event that is not a message, by its name without secrets. It ignores blocks without data, and
// events without a name.
//
//go:noinline // if inlined, it would enlarge the stack of the reading goroutine
func (o *observer) countName(b *service.Block) {
	if !b.HasData || len(b.Event) == 0 {
		return
	}
	if string(b.Event) != o.lastName { // lastName is empty before the first name
		o.lastName = o.recorder.eventName(b.Event, o.credentials())
	}
	o.ledger.CountEvent(o.lastName)
}

func (o *observer) closed(at time.Time, c sseclient.Close) {
	if o.commentAt != 0 {
		o.endComment(at, ledger.HeartbeatSign)
	}
	localReason := ""
	if !o.open {
		localReason = shard.LackReasons[network.LackOf(c.Err)]
	}
	c = o.credentials().describeEnd(at, c, int(o.streams))
	endedByServer := c.Reason == sseclient.ReasonServer || c.Reason == sseclient.ReasonTruncated || c.Reason == sseclient.ReasonReset
	if o.open {
		o.open = false
		o.recorder.removeStream()
	}
	reason := string(c.Reason)
	switch {
	case c.Reason == sseclient.ReasonStatus:
		reason += " " + strconv.Itoa(c.Status)
	case localReason != "":
		reason = localReason
	}
	o.ledger.Closed(o.recorder.instant(at), reason, endedByServer, c.Retry >= 0)
	o.ledger.Explain(explanation(c, o.recorder.credentials.Load()))
	if c.Retry >= c.ReconnectionTime { // otherwise the client reconnects at once
		o.ledger.DelayRequested(c.ReconnectionTime)
	}
	if o.sink != nil {
		o.recorder.telemetry.end(o.sink)
	}
}
