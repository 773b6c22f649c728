package soak

import (
	"fmt"
	"slices"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A phase is an action on streams of one call of hold. soak-streams.d.ts documents it.
type phase struct {
	Name    string  `js:"name"` // tag `scenario` of its samples
	At      float64 `js:"at"`   // ms after all runners of the machine have called hold
	Action  string  `js:"action"`
	Streams []int   `js:"streams"` // nil: all

	// Only the action slow uses these fields.
	For       float64 `js:"for"`                 // ms of slow reads
	After     float64 `js:"after"`               // ms of fast reads after the slow reads, before the phase ends
	Rate      float64 `js:"bytesPerSecond"`      // 0: nothing is read
	MessageKB float64 `js:"messageKB"`           // upper limit of the measured size of a message; 0: no limit
	FillKB    float64 `js:"fillKB"`              // backlog at which a slow stream counts as filled
	PerSecond float64 `js:"broadcastsPerSecond"` // unused if the call of hold has no broadcasts
}

var phaseActions = map[string]func(h *holding, p *phase){
	"vanish":     (*holding).vanish,
	"drop":       func(h *holding, p *phase) { h.drop(p, false) },
	"dropAtOnce": func(h *holding, p *phase) { h.drop(p, true) },
	"slow":       (*holding).slow,
}

// Metrics of the phases that disconnect clients.
const (
	vanishVanished = "vanish_vanished"
	stormDropped   = "storm_dropped"
	stormDialDelay = "storm_dial_delay" // from the due time of a dial to its start: delay of the load generator
	stormConnect   = "storm_connect"    // from the dial to the headers, for the attempt that reconnected the client
)

func checkPhases(phases []phase) error {
	for _, p := range phases {
		if phaseActions[p.Action] == nil || p.Name == "" || !(p.At >= 0) {
			return fmt.Errorf("soak.hold: a phase must have a name, a time of at least 0 and the action vanish, drop, dropAtOnce or slow, got name %q, at %v and action %q", p.Name, p.At, p.Action)
		}
	}
	return nil
}

func (p *phase) actsOn(n int) bool { return p.Streams == nil || slices.Contains(p.Streams, n) }

func (h *holding) drops() bool {
	return slices.ContainsFunc(h.Phases, func(p phase) bool { return p.Action == "drop" || p.Action == "dropAtOnce" })
}

func (h *holding) schedulePhases() {
	for _, p := range h.Phases {
		h.phaseTimers = append(h.phaseTimers, time.AfterFunc(time.Until(h.started.Add(milli(p.At))), func() { h.act(&p) }))
	}
}

// act performs the action of a phase, unless the ends of the streams are being requested. The method end waits for
// running actions before it requests the ends.
func (h *holding) act(p *phase) {
	h.mu.Lock()
	ending := h.ending
	if !ending {
		h.open++ // the iteration must not end before the last sample
		h.runningActions.Add(1)
	}
	h.mu.Unlock()
	if ending {
		return
	}
	defer h.release()
	defer h.runningActions.Done()
	phaseActions[p.Action](h, p)
}

func (h *holding) tagsOf(name string) metrics.TagsAndMeta {
	tags := h.state.Tags.GetCurrentValues()
	tags.SetTag(metrics.TagScenario.String(), name)
	return tags
}

// sample queues a sample for k6. name is the name of the metric.
func (h *holding) sample(name string, tags metrics.TagsAndMeta, at time.Time, value float64) {
	series := metrics.TimeSeries{Metric: h.m.recorder.telemetry.metrics[name], Tags: tags.Tags}
	h.group.Push(metrics.Sample{TimeSeries: series, Metadata: tags.Metadata, Time: at, Value: value})
}

// vanish leaves the connections of open streams half-open, and counts these streams.
func (h *holding) vanish(p *phase) {
	tags := h.tagsOf(p.Name)
	for _, s := range h.streams {
		if !p.actsOn(int(s.n)) {
			continue
		}
		open, err := s.stream.Vanish()
		if err != nil {
			h.state.Logger.WithError(err).Error("hold: vanish")
			return
		}
		if open {
			h.sample(vanishVanished, tags, time.Now(), 1)
		}
	}
}

// A reconnection is the pending reconnect of a dropped client.
type reconnection struct {
	tags metrics.TagsAndMeta
	due  time.Time // when the first dial of the client is due; zero before the stream has closed, and after a failed attempt
}

// drop closes the connections of open streams, counts these streams, and starts to measure the reconnects of the
// clients. If immediate is true, the clients reconnect without a delay.
func (h *holding) drop(p *phase, immediate bool) {
	tags := h.tagsOf(p.Name)
	dropOne := func(s *holdStream) bool {
		h.reconnectMu.Lock() // during the drop, because the stream may reconnect at once
		defer h.reconnectMu.Unlock()
		open := s.stream.Drop(immediate)
		if open {
			s.phase.reconnection = &reconnection{tags: tags}
		}
		return open
	}
	for _, s := range h.streams {
		if p.actsOn(int(s.n)) && dropOne(s) {
			h.sample(stormDropped, tags, time.Now(), 1)
		}
	}
}

// closed records when a stream or an attempt ended, and when the next dial of a dropped stream is due.
func (s *holdStream) closed(at time.Time, c sseclient.Close) {
	s.phase.closedAt.Store(at.UnixNano())
	s.holding.reconnectMu.Lock()
	defer s.holding.reconnectMu.Unlock()
	r := s.phase.reconnection
	if r == nil {
		return
	}
	r.due = time.Time{}
	if c.Reason == sseclient.ReasonCut {
		r.due = at.Add(c.Retry)
	}
}

// opened records that the stream has opened, and the reconnect of a dropped stream. start is the time when the dial
// started; at is the time when the headers arrived.
func (s *holdStream) opened(start, at time.Time) {
	h, t := s.holding, s.phase
	h.reconnectMu.Lock()
	r := t.reconnection
	t.reconnection = nil
	h.reconnectMu.Unlock()
	select {
	case <-t.headers:
	default:
		close(t.headers)
	}
	if r == nil {
		return
	}
	h.sample(stormConnect, r.tags, at, metrics.D(at.Sub(start)))
	if !r.due.IsZero() {
		h.sample(stormDialDelay, r.tags, at, metrics.D(max(start.Sub(r.due), 0)))
	}
}
