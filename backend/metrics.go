package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/sse-soak/sse-soak/backend/services"
)

// A counterID identifies a counter of the scheduler.
type counterID int

const (
	streamsOpened counterID = iota
	noopsSent
	messagesSent
	sendErrors
	slowConsumers
	streamsResumed
	framesReplayed
	countersCount // number of counters
)

var counterTexts = [countersCount]struct{ name, help string }{
	streamsOpened:  {"streams_opened_total", "Opened event streams."},
	noopsSent:      {"noops_sent_total", "Sent noops; a replayed noop counts once."},
	messagesSent:   {"messages_sent_total", "Sent messages other than noops; a replayed message counts once."},
	sendErrors:     {"send_errors_total", "Failed writes to a stream."},
	slowConsumers:  {"slow_consumers_total", "Streams that were closed because the client read too slowly."},
	streamsResumed: {"resumed_total", "Streams that resumed with Last-Event-ID."},
	framesReplayed: {"replayed_total", "Events that were replayed to a resumed stream."},
}

// metrics holds the metrics that /metrics serves. No label contains an id.
type metrics struct {
	registry         *prometheus.Registry
	counters         [countersCount]prometheus.Counter
	closings         [closeReasonsCount]prometheus.Counter
	refusals         *prometheus.CounterVec
	broadcastSeconds prometheus.Histogram
}

func newMetrics(cfg *Config, clk clock, h *hub, plain *services.Handler) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(prometheus.WrapRegistererWithPrefix("backend_", m.registry))
	for i, c := range counterTexts {
		m.counters[i] = add.NewCounter(prometheus.CounterOpts{Name: c.name, Help: c.help})
	}
	closings := add.NewCounterVec(prometheus.CounterOpts{Name: "streams_closed_total", Help: "Closed event streams, by reason."}, []string{"reason"})
	for r := closedByCall; r < closeReasonsCount; r++ {
		m.closings[r] = closings.WithLabelValues(r.String())
	}
	m.refusals = add.NewCounterVec(prometheus.CounterOpts{Name: "refused_total", Help: "Refused connects, by reason."}, []string{"reason"})
	for _, r := range []string{"bad_request", "duplicate", "full", "draining", "descriptor", "fault"} {
		m.refusals.WithLabelValues(r)
	}
	m.broadcastSeconds = add.NewHistogram(prometheus.HistogramOpts{
		Name: "broadcast_duration_seconds", Help: "Time to write a noop to all streams for which it is due, or a message to all streams.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}})
	add.NewGaugeVec(prometheus.GaugeOpts{Name: "build_info", Help: "Always 1; the labels state the versions and the schedule."}, []string{"version", "goversion", "schedule"}).
		WithLabelValues(buildVersion(), runtime.Version(), cfg.NoopSchedule).Set(1)
	gauge := func(name, help string, value func() float64) {
		add.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	callHub := func(read func() int) func() float64 {
		return func() (n float64) {
			h.call(func() { n = float64(read()) })
			return n
		}
	}
	gauge("noop_interval_seconds", "Time between two noops of one stream.", func() float64 { return cfg.NoopInterval.Seconds() })
	gauge("start_time_seconds", "Start of the backend, in seconds since 1970.", func() float64 { return float64(clk.unix) / 1e6 })
	gauge("max_connections", "Maximum number of open streams.", func() float64 { return float64(cfg.MaxConnections) })
	gauge("streams_open", "Open event streams.", func() float64 { return float64(h.openStreams()) })
	gauge("ledger_entries", "Ids in the ledger.", callHub(func() int { return len(h.devices) }))
	gauge("resumable_ids", "Ids that have no stream, but keep their numbering for a resume.", callHub(func() int { return h.resumable.Len() }))
	add.NewCounterFunc(prometheus.CounterOpts{Name: "service_requests_total", Help: "Plain HTTP requests."},
		func() float64 { return float64(plain.Received()) })
	gauge("service_requests_in_flight", "Plain HTTP requests in progress.", func() float64 { return float64(plain.InFlight()) })
	return m
}
