package sse

import (
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// flushInterval is the maximum time between an event and its sample.
const flushInterval = time.Second

// A Meter holds the state of the samples of one stream. The value of each stream embeds one.
type Meter struct {
	counter  *eventCounter // with the tags of the open stream
	openedAt time.Duration // of the open stream, since processStart; 0 after its first event
}

// processStart is the reference point for times that are stored as durations, which need less memory.
var processStart = time.Now()

func (m *Meter) meter() *Meter { return m }

func meterOf(s *sseclient.Stream) *Meter { return s.Value().(interface{ meter() *Meter }).meter() }

// measure makes the callbacks push the samples of their streams. tags are the tags of the requests.
func (s *session) measure(tags *metrics.TagsAndMeta, callbacks *sseclient.Callbacks) {
	callbacks.Opened = chain(callbacks.Opened, func(st *sseclient.Stream, started time.Time, r *sseclient.Response) {
		m := meterOf(st)
		m.openedAt, m.counter = r.At.Sub(processStart), s.counter(describeResponse(*tags, s.state, r))
		s.push(s.m.metrics.streamOpened(&m.counter.tags, started, r.At)...)
	})
	callbacks.Event = chain(callbacks.Event, func(st *sseclient.Stream, at time.Time, _ *eventstream.Event) {
		m := meterOf(st)
		m.counter.add()
		if m.openedAt != 0 {
			s.push(sample(s.m.metrics.firstEvent, &m.counter.tags, at, metrics.D(at.Sub(processStart)-m.openedAt)))
			m.openedAt = 0
		}
	})
	callbacks.Closed = chain(callbacks.Closed, func(st *sseclient.Stream, at time.Time, c sseclient.Close) {
		s.push(s.closedSample(tags, meterOf(st), at, &c))
	})
	if callbacks.FollowUp != nil {
		callbacks.Answered = chain(callbacks.Answered, func(st *sseclient.Stream, at time.Time, r *sseclient.Response) {
			s.push(sample(s.m.metrics.secondRequest, &meterOf(st).counter.tags, at, metrics.D(at.Sub(r.Started))))
		})
	}
}

// chain returns a callback that calls first, unless it is nil, and then second.
func chain[T any](first, second func(*sseclient.Stream, time.Time, T)) func(*sseclient.Stream, time.Time, T) {
	if first == nil {
		return second
	}
	return func(s *sseclient.Stream, at time.Time, value T) {
		first(s, at, value)
		second(s, at, value)
	}
}

func (s *session) closedSample(tags *metrics.TagsAndMeta, m *Meter, at time.Time, c *sseclient.Close) metrics.Sample {
	if c.Opened {
		return s.m.metrics.streamClosed(m.counter.tags, at, c.Reason, true)
	}
	return s.m.metrics.streamClosed(describeResponse(*tags, s.state, c.Response), at, c.Reason, false)
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

func (c *eventCounter) add() {
	c.n.Add(1)
	c.session.scheduleFlush()
}

func (s *session) scheduleFlush() {
	if !s.isScheduled.Load() && s.isScheduled.CompareAndSwap(false, true) {
		if s.timer == nil {
			s.timer = time.AfterFunc(flushInterval, s.flush)
		} else {
			s.timer.Reset(flushInterval)
		}
	}
}

// flush passes the samples to k6, or keeps them for finish if the context has ended. It runs in the timer's goroutine.
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

// collect removes and returns the pending samples and the samples of the counters.
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

// sseMetrics holds the metrics of the module. sse.d.ts documents them for users.
type sseMetrics struct {
	event         *metrics.Metric // counter: events received, with or without a listener
	connecting    *metrics.Metric // trend, time: start of the dial to complete headers
	firstEvent    *metrics.Metric // trend, time: complete headers to first event
	opened        *metrics.Metric // counter: event streams opened
	closed        *metrics.Metric // counter: attempts and streams ended, by reason
	secondRequest *metrics.Metric // trend, time, of accepted second requests: start of the dial to complete headers
	builtin       *metrics.BuiltinMetrics
}

func registerMetrics(vu modules.VU) *sseMetrics {
	r := vu.InitEnv().Registry
	return &sseMetrics{
		event:         r.MustNewMetric("sse_event", metrics.Counter),
		connecting:    r.MustNewMetric("sse_connecting", metrics.Trend, metrics.Time),
		firstEvent:    r.MustNewMetric("sse_first_event", metrics.Trend, metrics.Time),
		opened:        r.MustNewMetric("sse_connection_opened", metrics.Counter),
		closed:        r.MustNewMetric("sse_connection_closed", metrics.Counter),
		secondRequest: r.MustNewMetric("sse_then", metrics.Trend, metrics.Time),
		builtin:       vu.InitEnv().BuiltinMetrics,
	}
}

// streamOpened returns the samples of a stream that has opened, after a dial that started at start.
func (m *sseMetrics) streamOpened(tm *metrics.TagsAndMeta, start, at time.Time) metrics.Samples {
	return metrics.Samples{
		sample(m.connecting, tm, at, metrics.D(at.Sub(start))),
		sample(m.opened, tm, at, 1),
	}
}

// streamClosed returns the sample of an attempt or a stream that has ended.
func (m *sseMetrics) streamClosed(tm metrics.TagsAndMeta, at time.Time, reason sseclient.Reason, opened bool) metrics.Sample {
	tm.SetTag("reason", string(reason))
	tm.SetTag("opened", strconv.FormatBool(opened))
	return sample(m.closed, &tm, at, 1)
}

func sample(m *metrics.Metric, tm *metrics.TagsAndMeta, at time.Time, value float64) metrics.Sample {
	return metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: m, Tags: tm.Tags},
		Time:       at,
		Value:      value,
		Metadata:   tm.Metadata,
	}
}
