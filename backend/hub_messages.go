package main

import (
	"bytes"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// A delivery is the result of sending a message.
type delivery struct {
	ID        string `json:"id,omitempty"`
	Number    uint64 `json:"number,omitempty"`
	Delivered int    `json:"delivered"` // number of open streams that the message is queued for
	Kept      int    `json:"kept"`      // number of ids that have no stream, but for which the message is stored
}

// send queues a message for the stream of an id. If the id has no stream but its numbering continues, send only stores
// the message for a resume. For other ids it returns errNoStream.
func (h *hub) send(id string, body []byte) (delivery, error) {
	d := h.devices[id]
	if d == nil || !d.acceptsMessages() {
		return delivery{}, errNoStream
	}
	var frames frameCache
	frames.begin(body, h.timestamp())
	out := delivery{ID: id}
	h.message(d, &frames, &keptBody{data: body}, &out)
	h.flushBatch()
	out.Number = d.seq
	return out, nil
}

// broadcast queues a message for all streams, and stores it for all ids whose numbering continues without a stream.
func (h *hub) broadcast(body []byte) delivery {
	start := time.Now()
	var frames frameCache
	frames.begin(body, h.timestamp())
	var out delivery
	shared := &keptBody{data: body}
	for _, bucket := range h.wheel.buckets {
		for _, d := range slices.Clone(bucket) { // a write may close a stream, and thereby remove ids from the bucket
			if d.acceptsMessages() {
				h.message(d, &frames, shared, &out)
			}
		}
	}
	h.flushBatch()
	if out.Delivered > 0 {
		h.metrics.broadcastSeconds.Observe(time.Since(start).Seconds())
	}
	return out
}

// acceptsMessages reports whether an id has a stream that is not ending, or a numbering without a stream.
func (d *device) acceptsMessages() bool {
	return d.resumable || d.open && d.ending == stillOpen
}

// message numbers a message, queues it if the id has a stream, and counts it in out. It stores the message for a resume
// if RESUME_WINDOW is above 0.
func (h *hub) message(d *device, frames *frameCache, body *keptBody, out *delivery) {
	d.seq++
	if h.cfg.ResumeWindow > 0 {
		h.replay.keep(d, body, h.clk.elapsed())
	}
	if !d.open {
		out.Kept++
		return
	}
	out.Delivered++
	h.deliver(d, item{wire: frames.get(d.seq).bytes(d.chunked), seq: d.seq, count: 1, messages: 1})
}

// maxReplay limits how many numbers a resume replays. A client that missed more numbers sees a gap.
const maxReplay = 1024

// replayFrom writes the noops and messages of an id from a number to the last one, at most maxReplay. Their timestamp
// is the time of the replay. If the replay log has dropped a message, replayFrom omits its number and all earlier ones.
// It also omits the numbers of an ended numbering, whose messages are no longer stored.
func (h *hub) replayFrom(d *device, from uint64) {
	end := d.seq
	if from > end || !d.open {
		return
	}
	from = max(from, d.replayableAfter+1, end-min(end, maxReplay)+1)
	sent := h.timestamp()
	messages := d.messages
	for seq := from; seq <= end && d.open; seq++ {
		for len(messages) > 0 && messages[0].seq < seq {
			messages = messages[1:]
		}
		next, body := item{seq: seq, count: 1}, []byte(noopData)
		if len(messages) > 0 && messages[0].seq == seq {
			next.messages, body = 1, messages[0].body.data
		}
		next.wire = newFrame(append(eventHead(seq, sent), body...)).bytes(d.chunked)
		h.push(d, next)
		if d.queue != nil {
			d.queue.room++ // a long replay must not make a client count as slow
		}
		h.metrics.counters[framesReplayed].Inc()
	}
}

// Limits on the messages that are stored for resumes, for all ids together.
const (
	maxKeptBytes   = 64 << 20
	maxKeptEntries = 1 << 18
)

// A replayLog is the queue of all messages that are stored for resumes (device.messages), oldest first. It limits their
// age, bytes and number. Noops are not stored, because they can be generated again.
type replayLog struct {
	queue []keptEntry
	bytes int
}

type keptEntry struct {
	d    *device
	seq  uint64
	at   time.Duration // elapsed time at which the message was stored
	body *keptBody
}

type keptMessage struct {
	seq  uint64
	body *keptBody
}

// A keptBody is the body of a stored message. All ids that receive a broadcast share one keptBody.
type keptBody struct {
	data []byte
	refs int // number of device.messages lists that contain the body
}

// keep stores a message for an id under the number d.seq. It drops the oldest messages if a limit is exceeded.
func (l *replayLog) keep(d *device, body *keptBody, now time.Duration) {
	if body.refs++; body.refs == 1 {
		l.bytes += len(body.data)
	}
	d.messages = append(d.messages, keptMessage{d.seq, body})
	l.queue = append(l.queue, keptEntry{d, d.seq, now, body})
	for l.bytes > maxKeptBytes || len(l.queue) > maxKeptEntries {
		l.dropOldest()
	}
}

// expire drops the messages that were stored before limit, an elapsed time.
func (l *replayLog) expire(limit time.Duration) {
	for len(l.queue) > 0 && l.queue[0].at < limit {
		l.dropOldest()
	}
	if len(l.queue) == 0 {
		l.queue = nil
	}
}

// dropOldest removes the oldest entry of the queue. If its message is still stored, dropOldest drops the message, and a
// replay for the id then begins after its number.
func (l *replayLog) dropOldest() {
	e := l.queue[0]
	l.queue[0] = keptEntry{}
	l.queue = l.queue[1:]
	if len(e.d.messages) > 0 && e.d.messages[0].body == e.body && e.d.messages[0].seq == e.seq {
		e.d.messages[0] = keptMessage{}
		e.d.messages = e.d.messages[1:]
		e.d.replayableAfter = e.seq
		l.unref(e.body)
	}
}

// forget drops all messages of an id. Their entries remain in the queue until dropOldest removes them, and count toward
// maxKeptEntries until then.
func (l *replayLog) forget(d *device) {
	for _, m := range d.messages {
		l.unref(m.body)
	}
	d.messages = nil
}

func (l *replayLog) unref(body *keptBody) {
	if body.refs--; body.refs == 0 {
		l.bytes -= len(body.data)
	}
}

// serveTicks serves all ticks that are due. After a pause of the process it also serves the missed ticks, so a noop
// may be late, but is never omitted.
func (h *hub) serveTicks() {
	if h.draining {
		return
	}
	for due := h.wheel.tickAt(h.clk.elapsed()); h.tick < due && !h.stopping && !h.draining; {
		h.tick++
		h.pass(h.tick)
	}
}

// pass assigns the next number to each id in the bucket of a tick, and sends a noop if the id has a stream. It handles
// the inbox after every passShare streams, so that a connect does not wait for the whole pass. Functions in the inbox
// may end numberings, and start others that do not include this tick.
func (h *hub) pass(tick int64) {
	start, count := time.Now(), 0
	h.frames.begin([]byte(noopData), h.timestamp())
	for _, d := range slices.Clone(h.wheel.buckets[h.wheel.bucketOf(tick)]) {
		if d.bucket < 0 || d.tick >= tick {
			continue
		}
		d.tick = tick
		d.seq++
		if d.open {
			h.noop(d)
			count++
		}
		if count%passShare == passShare-1 && h.waiting.Load() {
			h.flushBatch()
			h.handleInbox(inboxShare)
			h.frames.begin([]byte(noopData), h.timestamp())
		}
	}
	h.flushBatch()
	if count > 0 {
		h.metrics.broadcastSeconds.Observe(time.Since(start).Seconds())
	}
}

func (h *hub) noop(d *device) {
	next := item{wire: h.frames.get(d.seq).bytes(d.chunked), seq: d.seq, count: 1}
	if !h.faults.Empty() && d.postponedNoop == nil {
		if f := h.faults.AtNoop(d.id, d.seq, h.clk.unixMicros()); f != nil {
			h.injectAtNoop(d, f, next)
			return
		}
	}
	h.deliver(d, next)
}

// timestamp returns the current time for `sent=` in microseconds since 1970, or 0 if events have no timestamps.
func (h *hub) timestamp() int64 {
	if !h.cfg.NoopTimestamps {
		return 0
	}
	return h.clk.unixMicros()
}

// injectAtNoop applies a fault. The ledger counts an omitted noop as sent, so that a run can detect the fault.
func (h *hub) injectAtNoop(d *device, f *fault.Fault, noop item) {
	h.log.Warn("fault injected", "fault", string(f.Kind), "id", d.id, "number", noop.seq)
	switch f.Kind {
	case fault.Drop:
		noop.wire = nil
		h.push(d, noop)
	case fault.Duplicate:
		noop.wire = append(bytes.Clone(noop.wire), noop.wire...)
		h.push(d, noop)
	case fault.Corrupt:
		event := append(eventHead(noop.seq, h.frames.sentAt), corruptData...)
		noop.wire = newFrame(event).bytes(d.chunked)
		h.push(d, noop)
	case fault.Reorder:
		d.postponedNoop = &noop // push writes it after the next item with a number
	case fault.Delay:
		now := h.clk.elapsed()
		q := h.backlogOf(d, now)
		q.delayedUntil = max(q.delayedUntil, now) + f.Wait
		h.push(d, noop)
	case fault.Stall:
		d.stalled = true
		h.push(d, noop)
	case fault.Truncate:
		noop.wire = noop.wire[:len(noop.wire)/2]
		h.push(d, noop)
		h.closeStream(d, closedByFault)
	case fault.Reset:
		h.closeOrResetStream(d, closedByFault, true)
	case fault.Die:
		killSelf()
	}
}
