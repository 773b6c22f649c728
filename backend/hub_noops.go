package main

import "time"

// serveTicks serves every tick that is due. After a pause of the process it
// serves the missed ones too, one by one: a noop is late, never skipped.
func (h *hub) serveTicks() {
	if h.draining {
		return
	}
	for due := h.wheel.tickAt(h.clk.elapsed()); h.tick < due && !h.stopping && !h.draining; {
		h.tick++
		h.pass(h.tick)
	}
}

// pass sends every id of the tick's bucket its noop. It handles the inbox in between, so that a connect waits for a
// part of a pass only. The inbox may change the bucket. So the pass starts at the end of the bucket: new ids are
// appended behind it, a removal only moves the last id forward, and each device stores the last tick that counted for
// it.
func (h *hub) pass(tick int64) {
	start, count := time.Now(), 0
	h.frames.begin([]byte(noopData), h.timestamp())
	bucket := &h.wheel.buckets[h.wheel.bucketOf(tick)]
	for i := len(*bucket) - 1; i >= 0; i-- {
		if i >= len(*bucket) {
			i = len(*bucket)
			continue
		}
		d := (*bucket)[i]
		if d.tick >= tick {
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

// noop writes the number d.seq to the stream.
func (h *hub) noop(d *device) {
	next := item{wire: h.frames.get(d.seq).bytes(d.chunked), seq: d.seq, count: 1}
	if !h.faults.Empty() && d.swapped == nil {
		if f := h.faults.AtNoop(d.id, d.seq, h.clk.unixMicros()); f != nil {
			h.injectAtNoop(d, f, next)
			return
		}
	}
	h.deliver(d, next)
}

// timestamp returns the value of `sent=` in frames made now; 0 omits it.
func (h *hub) timestamp() int64 {
	if !h.cfg.NoopTimestamps {
		return 0
	}
	return h.clk.unixMicros()
}
