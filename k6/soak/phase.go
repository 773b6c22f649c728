package soak

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse"
)

// A phase is an action on all streams of one call of hold; soak.d.ts documents it.
type phase struct {
	Name   string  `js:"name"` // tag `scenario` of its samples
	At     float64 `js:"at"`   // ms
	Action string  `js:"action"`
}

// actions are what a phase can do to a stream, by name. Each returns whether the stream was open.
var actions = map[string]struct {
	metric string // counts the streams, each at the time of the action
	do     func(*held, metrics.TagsAndMeta) (bool, error)
}{
	"vanish":     {"vanish_vanished", func(s *held, _ metrics.TagsAndMeta) (bool, error) { return s.stream.Vanish() }},
	"drop":       {"storm_dropped", func(s *held, tags metrics.TagsAndMeta) (bool, error) { return s.drop(tags, false), nil }},
	"dropAtOnce": {"storm_dropped", func(s *held, tags metrics.TagsAndMeta) (bool, error) { return s.drop(tags, true), nil }},
}

const (
	stormWaited  = "storm_waited"  // from the time at which a client should dial to its dial: delay of the load generator
	stormConnect = "storm_connect" // from the dial to the headers, of the attempt that reconnected the client
)

// phaseMetrics are the metrics of phases.
var phaseMetrics = []struct {
	name     string
	kind     metrics.MetricType
	contains metrics.ValueType
}{
	{"vanish_vanished", metrics.Counter, metrics.Default},
	{"storm_dropped", metrics.Counter, metrics.Default},
	{stormWaited, metrics.Trend, metrics.Time},
	{stormConnect, metrics.Trend, metrics.Time},
}

// checkPhases returns an error if a phase is not valid.
func checkPhases(phases []phase) error {
	for _, p := range phases {
		if _, ok := actions[p.Action]; !ok || p.Name == "" || !(p.At >= 0) {
			return fmt.Errorf("soak.hold: the phase %q at %v ms with the action %q must have a name, a time of at least 0, and the action vanish, drop or dropAtOnce", p.Name, p.At, p.Action)
		}
	}
	return nil
}

// schedulePhases has each phase begin at its time.
func (h *holding) schedulePhases() {
	for _, p := range h.Phases {
		h.phaseTimers = append(h.phaseTimers, time.AfterFunc(time.Until(h.begun.Add(milli(p.At))), func() { h.act(p) }))
	}
}

// act performs the action of a phase on all streams.
func (h *holding) act(p phase) {
	h.mu.Lock()
	ending := h.ending
	if !ending {
		h.open++ // the iteration must not end before the last sample
	}
	h.mu.Unlock()
	if ending {
		return
	}
	defer h.release()
	action, tags := actions[p.Action], h.state.Tags.GetCurrentValues()
	tags.SetTag(metrics.TagScenario.String(), p.Name)
	for _, s := range h.streams {
		open, err := action.do(s, tags)
		if err != nil {
			h.state.Logger.WithError(err).Error("hold: " + p.Action)
			return
		}
		if open {
			h.sample(action.metric, tags, time.Now(), 1)
		}
	}
}

func (h *holding) sample(name string, tags metrics.TagsAndMeta, at time.Time, value float64) {
	series := metrics.TimeSeries{Metric: h.m.recorder.telemetry.metrics[name], Tags: tags.Tags}
	h.group.Push(metrics.Sample{TimeSeries: series, Metadata: tags.Metadata, Time: at, Value: value})
}

// returns measures the reconnects of streams that a phase dropped.
type returns struct {
	mu      sync.Mutex
	pending map[*held]*pendingReturn
}

// A pendingReturn is a dropped stream that has not opened again.
type pendingReturn struct {
	tags metrics.TagsAndMeta
	due  time.Time // of its first dial; zero after a failed attempt
}

// drop drops the stream and measures its return.
func (s *held) drop(tags metrics.TagsAndMeta, atOnce bool) bool {
	r := &s.of.returns
	r.mu.Lock() // during the drop: the stream may return at once
	defer r.mu.Unlock()
	if !s.stream.Drop(atOnce) {
		return false
	}
	if r.pending == nil {
		r.pending = map[*held]*pendingReturn{}
	}
	r.pending[s] = &pendingReturn{tags: tags}
	return true
}

// closed notes when the next dial of a dropped stream is due.
func (s *held) closed(at time.Time, c sse.Close) {
	r := &s.of.returns
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[s]
	if p == nil {
		return
	}
	p.due = time.Time{}
	if c.Reason == sse.ReasonCut {
		p.due = at.Add(c.Retry)
	}
}

// opened records the return of a dropped stream, whose dial began at begun.
func (s *held) opened(begun, at time.Time) {
	r := &s.of.returns
	r.mu.Lock()
	p := r.pending[s]
	delete(r.pending, s)
	r.mu.Unlock()
	if p == nil {
		return
	}
	s.of.sample(stormConnect, p.tags, at, metrics.D(at.Sub(begun)))
	if !p.due.IsZero() {
		s.of.sample(stormWaited, p.tags, at, metrics.D(max(begun.Sub(p.due), 0)))
	}
}

// drops reports whether a phase drops the streams.
func (h *holding) drops() bool {
	return slices.ContainsFunc(h.Phases, func(p phase) bool { return actions[p.Action].metric == "storm_dropped" })
}
