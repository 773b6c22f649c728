package main

import (
	"slices"
	"time"
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

// broadcast queues a message for all streams, and stores it for all ids without a stream whose numbering continues.
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
