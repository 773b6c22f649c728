package handshake

import (
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"
)

// handshakeMetrics are the metrics of the module. handshake.d.ts documents them for users.
type handshakeMetrics struct {
	tcp    *metrics.Metric // trend, time: of handshakes that came about
	tls    *metrics.Metric // trend, time
	answer *metrics.Metric // trend, time: request to the head of the answer
	failed *metrics.Metric // counter, by cause
	open   *metrics.Metric // gauge: connections open in this process
	// Counters of bytes on the wire: of all connections, and of TLS handshakes that came about.
	sent, received       *metrics.Metric
	tlsSent, tlsReceived *metrics.Metric
}

func registerMetrics(vu modules.VU) *handshakeMetrics {
	r := vu.InitEnv().Registry
	return &handshakeMetrics{
		tcp:    r.MustNewMetric("handshake_tcp", metrics.Trend, metrics.Time),
		tls:    r.MustNewMetric("handshake_tls", metrics.Trend, metrics.Time),
		answer: r.MustNewMetric("handshake_answer", metrics.Trend, metrics.Time),
		failed: r.MustNewMetric("handshake_failed", metrics.Counter),
		open:   r.MustNewMetric("handshake_open", metrics.Gauge),

		sent:        r.MustNewMetric("handshake_sent", metrics.Counter, metrics.Data),
		received:    r.MustNewMetric("handshake_received", metrics.Counter, metrics.Data),
		tlsSent:     r.MustNewMetric("handshake_tls_sent", metrics.Counter, metrics.Data),
		tlsReceived: r.MustNewMetric("handshake_tls_received", metrics.Counter, metrics.Data),
	}
}

// reportConnection pushes what became of a connection, with the VU's tags and the script's.
func (m *module) reportConnection(c *Connection) {
	set := m.tags(c)
	samples := make([]metrics.Sample, 0, 9)
	samples = append(samples, sampleOf(m.metrics.open, set, float64(c.open)))
	for _, phase := range [...]struct {
		metric *metrics.Metric
		value  float64
	}{
		{m.metrics.tcp, c.TCPMs}, {m.metrics.tls, c.TLSMs}, {m.metrics.answer, c.AnswerMs},
		{m.metrics.tlsSent, float64(c.shook.sent)}, {m.metrics.tlsReceived, float64(c.shook.received)},
	} {
		if phase.value > 0 {
			samples = append(samples, sampleOf(phase.metric, set, phase.value))
		}
	}
	m.push(c, set, samples)
}

// reportAnswer pushes what became of one more request on an open connection.
func (m *module) reportAnswer(c *Connection) {
	set := m.tags(c)
	var samples []metrics.Sample
	if c.OK {
		samples = append(samples, sampleOf(m.metrics.answer, set, c.AnswerMs))
	}
	m.push(c, set, samples)
}

func (m *module) tags(c *Connection) *metrics.TagSet {
	return m.vu.State().Tags.GetCurrentValues().Tags.WithTagsFromMap(c.request.tags)
}

func (m *module) push(c *Connection, set *metrics.TagSet, samples []metrics.Sample) {
	now := c.wire.bytes()
	if more := now.since(c.reported); more != (traffic{}) {
		samples = append(samples, sampleOf(m.metrics.sent, set, float64(more.sent)), sampleOf(m.metrics.received, set, float64(more.received)))
	}
	c.reported = now
	if !c.OK {
		samples = append(samples, sampleOf(m.metrics.failed, set.With("cause", c.Cause), 1))
	}
	metrics.PushIfNotDone(m.vu.Context(), m.vu.State().Samples, metrics.Samples(samples))
}

func sampleOf(metric *metrics.Metric, tags *metrics.TagSet, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: time.Now(), Value: value}
}
