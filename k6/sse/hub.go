package sse

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
)

// flushEvery is how long a counted event may wait to become part of a sample.
const flushEvery = time.Second

// hub is what the EventSources of one iteration share: one queue of tasks for the
// event loop with one registered callback, one watch on the VU's context, one
// counter of events per set of tags. It exists from the first source of an iteration
// to the end of the last; a later source gets a new one.
type hub struct {
	m       *module
	vu      modules.VU
	ctx     context.Context // the iteration's, as the hub is
	state   *lib.State
	samples chan<- metrics.SampleContainer
	unwatch func() bool
	open    int // sources not ended; on the event loop only

	// interrupted says that no JS is to run any more: the context ended or a handler
	// threw.
	interrupted atomic.Bool

	mu      sync.Mutex // guards what follows
	sources []*source
	queue   []task
	wake    func(func() error) // the registered callback; nil while a drain is queued
	pending metrics.Samples
	counts  map[*metrics.TagSet][]*eventCounter

	flushing sync.Mutex // held while counters are turned into samples
	armed    atomic.Bool
	timer    *time.Timer // touched by whoever armed it
}

// task runs on the event loop. Its error aborts the iteration.
type task func() error

// hub returns the running iteration's hub. On the event loop.
func (m *module) currentHub() *hub {
	if m.hub != nil {
		return m.hub
	}
	h := &hub{
		m: m, vu: m.vu, ctx: m.vu.Context(), state: m.vu.State(), samples: m.vu.State().Samples,
		counts: make(map[*metrics.TagSet][]*eventCounter),
		wake:   m.vu.RegisterCallback(),
	}
	limitGarbage()
	h.unwatch = context.AfterFunc(h.ctx, h.interrupt)
	m.hub = h
	return h
}

// add counts a source in. On the event loop.
func (h *hub) add(s *source) {
	h.open++
	h.know(s)
}

// know has a source be interrupted with the others. From any goroutine, while a source is open.
func (h *hub) know(s *source) {
	h.mu.Lock()
	s.place = int32(len(h.sources)) //nolint:gosec // G115: streams of one process
	h.sources = append(h.sources, s)
	h.mu.Unlock()
	if h.interrupted.Load() {
		s.stop(ReasonInterrupted)
	}
}

// forget ends that: it has no goroutine or timer left.
func (h *hub) forget(s *source) {
	h.mu.Lock()
	last := len(h.sources) - 1
	h.sources[s.place] = h.sources[last]
	h.sources[s.place].place = s.place
	h.sources[last] = nil
	h.sources = h.sources[:last]
	h.mu.Unlock()
}

// remove counts a source out that has no goroutine or timer left. On the event loop.
func (h *hub) remove(s *source) {
	h.open--
	h.forget(s)
}

// interrupt closes every source at once. No JS runs after it.
func (h *hub) interrupt() {
	h.interrupted.Store(true)
	h.mu.Lock()
	all := slices.Clone(h.sources)
	h.mu.Unlock()
	for _, s := range all {
		s.stop(ReasonInterrupted)
	}
}

// post queues a task for the event loop. From any goroutine, as long as a source is
// open.
func (h *hub) post(t task) {
	h.mu.Lock()
	h.queue = append(h.queue, t)
	wake := h.wake
	h.wake = nil
	h.mu.Unlock()
	if wake != nil {
		wake(h.drain)
	}
}

// drain runs the queued tasks in one turn of the event loop.
func (h *hub) drain() error {
	h.mu.Lock()
	queue := h.queue
	h.queue = nil
	h.wake = h.vu.RegisterCallback()
	h.mu.Unlock()
	for i, t := range queue {
		queue[i] = nil
		if err := t(); err != nil {
			h.mu.Lock()
			h.queue = append(queue[i+1:len(queue):len(queue)], h.queue...)
			h.mu.Unlock()
			h.interrupt()
			h.post(func() error { return nil }) // the rest runs when k6 winds the loop down
			return err
		}
	}
	if h.open == 0 {
		h.finish()
	}
	return nil
}

// finish pushes what has not been and lets the iteration end. On the event loop: k6
// itself pushes samples there without a look at the context right after, so these
// are received in any case.
func (h *hub) finish() {
	if h.m.hub == h {
		h.m.hub = nil
	}
	h.unwatch()
	h.flushing.Lock()
	defer h.flushing.Unlock()
	h.mu.Lock()
	wake := h.wake
	h.wake = nil
	h.mu.Unlock()
	if last := h.collect(); len(last) > 0 {
		h.samples <- last
	}
	h.m.h2.closeIdle()
	if wake != nil {
		wake(func() error { return nil })
	}
}
