package model

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics holds the values of /metrics. No label contains the id of a request.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec // by API and outcome
	chunks   prometheus.Counter
	open     prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(prometheus.WrapRegistererWithPrefix("model_", m.registry))
	m.requests = add.NewCounterVec(prometheus.CounterOpts{
		Name: "requests_total", Help: "Requests that ended, by API and outcome.",
	}, []string{"api", "outcome"})
	m.chunks = add.NewCounter(prometheus.CounterOpts{Name: "chunks_sent_total", Help: "Chunks written to clients."})
	m.open = add.NewGauge(prometheus.GaugeOpts{Name: "requests_open", Help: "Requests that are being answered."})
	for _, api := range apis {
		for _, outcome := range outcomes {
			m.requests.WithLabelValues(api.name, string(outcome))
		}
	}
	return m
}
