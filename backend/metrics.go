package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sse-soak/sse-soak/backend/services"
)

// metrics is everything /metrics shows. No label ever holds an id.
type metrics struct {
	registry         *prometheus.Registry
	opened           prometheus.Counter
	closed           [closeReasonsCount]prometheus.Counter
	noops            prometheus.Counter
	messages         prometheus.Counter
	sendErrors       prometheus.Counter
	slow             prometheus.Counter
	refused          *prometheus.CounterVec
	resumed          prometheus.Counter
	replayed         prometheus.Counter
	broadcastSeconds prometheus.Histogram
}

// refusedReasons are the values of backend_refused_total's label.
var refusedReasons = []string{"bad_request", "duplicate", "full", "draining", "descriptor", "fault"}

func newMetrics(cfg *Config, clk clock) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "backend", Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	m.opened = counter("streams_opened_total", "Event streams opened.")
	m.noops = counter("noops_sent_total", "Noops handed to the kernel; replays count once.")
	m.messages = counter("messages_sent_total", "Messages handed to the kernel; replays count once.")
	m.sendErrors = counter("send_errors_total", "Writes to a stream that failed.")
	m.slow = counter("slow_consumers_total", "Streams cut off because the client did not read.")
	m.resumed = counter("resumed_total", "Streams that went on by Last-Event-ID.")
	m.replayed = counter("replayed_total", "Events sent again or late to a resumed stream.")

	closed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "backend", Name: "streams_closed_total", Help: "Event streams closed, by reason."}, []string{"reason"})
	for r := closedByCall; r < closeReasonsCount; r++ {
		m.closed[r] = closed.WithLabelValues(r.String())
	}
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "backend", Name: "refused_total", Help: "Connects refused, by reason."}, []string{"reason"})
	for _, r := range refusedReasons {
		m.refused.WithLabelValues(r)
	}
	m.broadcastSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "backend", Name: "broadcast_duration_seconds",
		Help:    "Time to write one noop or message to all streams that are due.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}})
	gauge := func(name, help string, value float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "backend", Name: name, Help: help})
		g.Set(value)
		m.registry.MustRegister(g)
	}
	gauge("noop_interval_seconds", "Time between two noops of one stream.", cfg.NoopInterval.Seconds())
	gauge("start_time_seconds", "When the backend started, seconds since 1970.", float64(clk.unix)/1e6)
	gauge("max_connections", "Most streams at a time.", float64(cfg.MaxConnections))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "backend", Name: "build_info", Help: "Always 1; the labels say what was built."},
		[]string{"version", "goversion", "schedule"})
	build.WithLabelValues(buildVersion(), runtime.Version(), cfg.NoopSchedule).Set(1)
	m.registry.MustRegister(closed, m.refused, m.broadcastSeconds, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observeHub adds the gauges that are read from the scheduler when asked for.
func (m *metrics) observeHub(h *hub) {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "backend", Name: name, Help: help}, value))
	}
	gauge("streams_open", "Event streams open.", func() float64 { return float64(h.streamsOpen()) })
	gauge("ledger_entries", "Ids in the ledger.", func() (n float64) {
		h.call(func() { n = float64(len(h.devices)) })
		return n
	})
	gauge("held_ids", "Ids without a stream whose numbering goes on for a resume.", func() (n float64) {
		h.call(func() { n = float64(h.held.live) })
		return n
	})
}

// observeServices adds what the plain services count.
func (m *metrics) observeServices(h *services.Handler) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "backend", Name: "service_requests_total", Help: "Requests that came to the plain services."},
			func() float64 { return float64(h.Received()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "backend", Name: "service_requests_in_flight", Help: "Requests that the plain services have in hand."},
			func() float64 { return float64(h.InFlight()) }))
}

func (m *metrics) streamClosed(r closeReason) { m.closed[r].Inc() }

// tally is what the scheduler counted since it last published: plain numbers,
// because atomics per noop would cost more than the noop.
type tally struct {
	opened, noops, messages, sendErrors, slow, resumed, replayed int
}

// publish adds the tally to the metrics and starts a new one.
func (t *tally) publish(m *metrics) {
	if *t == (tally{}) {
		return
	}
	m.opened.Add(float64(t.opened))
	m.noops.Add(float64(t.noops))
	m.messages.Add(float64(t.messages))
	m.sendErrors.Add(float64(t.sendErrors))
	m.slow.Add(float64(t.slow))
	m.resumed.Add(float64(t.resumed))
	m.replayed.Add(float64(t.replayed))
	*t = tally{}
}
