package sse

import (
	"maps"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// flushEvery is the maximum time between an event and its sample.
const flushEvery = time.Second

// A meter creates the samples of one stream.
type meter struct {
	session *session
	tags    *metrics.TagsAndMeta // of the request
	on      struct {             // the callbacks before measure; nil: none
		opened   func(time.Time, *sseclient.Response)
		event    func(time.Time, *eventstream.Event)
		closed   func(time.Time, sseclient.Close)
		answered func(time.Time, *sseclient.Response)
	}
	counter  *eventCounter // with the tags of the open stream
	openedAt time.Time     // of the open stream; zero after its first event
}

// measure adds the samples of a stream to its callbacks.
func (s *session) measure(tags *metrics.TagsAndMeta, on *sseclient.Callbacks) {
	m := &meter{session: s, tags: tags}
	m.on.opened, m.on.event, m.on.closed, m.on.answered = on.Opened, on.Event, on.Closed, on.Answered
	on.Opened, on.Event, on.Closed = m.opened, m.event, m.closed
	if on.FollowUp != nil {
		on.Answered = m.answered
	}
}

// opened calls the callback before measure, and queues the samples of an open stream.
func (m *meter) opened(started time.Time, r *sseclient.Response) {
	if m.on.opened != nil {
		m.on.opened(started, r)
	}
	s := m.session
	m.openedAt = r.At
	m.counter = s.counter(describeResponse(*m.tags, s.state, r))
	s.push(s.m.metrics.streamOpened(&m.counter.tags, started, r.At)...)
}

// event calls the callback before measure, and counts the event. For the first event of a stream it also queues a
// sample.
func (m *meter) event(at time.Time, e *eventstream.Event) {
	if m.on.event != nil {
		m.on.event(at, e)
	}
	m.counter.add()
	if !m.openedAt.IsZero() {
		m.session.push(sample(m.session.m.metrics.firstEvent, &m.counter.tags, at, metrics.D(at.Sub(m.openedAt))))
		m.openedAt = time.Time{}
	}
}

// answered calls the callback before measure, and queues the sample of an accepted second request.
func (m *meter) answered(at time.Time, r *sseclient.Response) {
	if m.on.answered != nil {
		m.on.answered(at, r)
	}
	m.session.push(sample(m.session.m.metrics.secondRequest, &m.counter.tags, at, metrics.D(at.Sub(r.Started))))
}

// closed calls the callback before measure, and queues the sample of the end of an attempt or a stream.
func (m *meter) closed(at time.Time, c sseclient.Close) {
	if m.on.closed != nil {
		m.on.closed(at, c)
	}
	s := m.session
	var tags metrics.TagsAndMeta
	if c.Opened {
		tags = m.counter.tags
	} else {
		tags = describeResponse(*m.tags, s.state, c.Response)
	}
	s.push(s.m.metrics.streamClosed(tags, at, c.Reason, c.Opened))
}

// push queues samples for the next flush. It does not wait, because one goroutine may read all streams.
func (s *session) push(samples ...metrics.Sample) {
	s.mu.Lock()
	s.pending = append(s.pending, samples...)
	s.mu.Unlock()
	s.scheduleFlush()
}

// An eventCounter counts the events of all streams with the same tags.
type eventCounter struct {
	session *session
	tags    metrics.TagsAndMeta
	n       atomic.Int64
}

// counter returns the event counter for a set of tags and metadata.
func (s *session) counter(tm metrics.TagsAndMeta) *eventCounter {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.counters[tm.Tags] {
		if maps.Equal(c.tags.Metadata, tm.Metadata) {
			return c
		}
	}
	c := &eventCounter{session: s, tags: tm}
	s.counters[tm.Tags] = append(s.counters[tm.Tags], c)
	return c
}

// add counts an event.
func (c *eventCounter) add() {
	c.n.Add(1)
	c.session.scheduleFlush()
}

// scheduleFlush schedules a flush, unless one is scheduled.
func (s *session) scheduleFlush() {
	if !s.isScheduled.Load() && s.isScheduled.CompareAndSwap(false, true) {
		if s.timer == nil {
			s.timer = time.AfterFunc(flushEvery, s.flush)
		} else {
			s.timer.Reset(flushEvery)
		}
	}
}

// flush passes the samples to k6. If the context has ended, it keeps them for finish. It runs in the goroutine of the
// timer.
func (s *session) flush() {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.isScheduled.Store(false)
	if all := s.collect(); len(all) > 0 && !metrics.PushIfNotDone(s.Context(), s.state.Samples, all) {
		s.mu.Lock()
		s.pending = append(all, s.pending...)
		s.mu.Unlock()
	}
}

// collect removes and returns the pending samples, and those of the counters.
func (s *session) collect() metrics.Samples {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.pending
	s.pending = nil
	now := time.Now()
	for _, counters := range s.counters {
		for _, c := range counters {
			if n := c.n.Swap(0); n > 0 {
				out = append(out, sample(s.m.metrics.event, &c.tags, now, float64(n)))
			}
		}
	}
	return out
}
