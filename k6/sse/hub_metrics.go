package sse

import (
	"maps"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/metrics"
)

// push queues samples for k6, within flushEvery. It never waits: one goroutine may read
// all streams.
func (h *hub) push(s ...metrics.Sample) {
	h.mu.Lock()
	h.pending = append(h.pending, s...)
	h.mu.Unlock()
	h.arm()
}

// eventCounter counts the events of all streams with the same tags.
type eventCounter struct {
	hub  *hub
	tags metrics.TagsAndMeta
	n    atomic.Int64
}

// counter returns the event counter for a set of tags and metadata.
func (h *hub) counter(tm metrics.TagsAndMeta) *eventCounter {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.counts[tm.Tags] {
		if maps.Equal(c.tags.Metadata, tm.Metadata) {
			return c
		}
	}
	c := &eventCounter{hub: h, tags: tm}
	h.counts[tm.Tags] = append(h.counts[tm.Tags], c)
	return c
}

// add counts one event. The first one after a flush arms the next.
func (c *eventCounter) add() {
	c.n.Add(1)
	c.hub.arm()
}

// arm has the next flush come.
func (h *hub) arm() {
	if !h.armed.Load() && h.armed.CompareAndSwap(false, true) {
		if h.timer == nil {
			h.timer = time.AfterFunc(flushEvery, h.flush)
		} else {
			h.timer.Reset(flushEvery)
		}
	}
}

// flush hands k6 what has gathered, or keeps it for finish once the context has ended.
// In the timer's goroutine.
func (h *hub) flush() {
	h.flushing.Lock()
	defer h.flushing.Unlock()
	h.armed.Store(false)
	if s := h.collect(); len(s) > 0 && !metrics.PushIfNotDone(h.ctx, h.samples, s) {
		h.mu.Lock()
		h.pending = append(s, h.pending...)
		h.mu.Unlock()
	}
}

// collect takes the samples that wait, and one per counter that counted.
func (h *hub) collect() metrics.Samples {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.pending
	h.pending = nil
	now := time.Now()
	for _, same := range h.counts {
		for _, c := range same {
			if n := c.n.Swap(0); n > 0 {
				out = append(out, sample(h.m.metrics.event, &c.tags, now, float64(n)))
			}
		}
	}
	return out
}
