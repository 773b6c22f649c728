package main

import (
	"slices"
	"time"
)

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
