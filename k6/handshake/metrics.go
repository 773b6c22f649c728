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
}

func registerMetrics(vu modules.VU) *handshakeMetrics {
	r := vu.InitEnv().Registry
	return &handshakeMetrics{
		tcp:    r.MustNewMetric("handshake_tcp", metrics.Trend, metrics.Time),
		tls:    r.MustNewMetric("handshake_tls", metrics.Trend, metrics.Time),
		answer: r.MustNewMetric("handshake_answer", metrics.Trend, metrics.Time),
		failed: r.MustNewMetric("handshake_failed", metrics.Counter),
		open:   r.MustNewMetric("handshake_open", metrics.Gauge),
	}
}

// reportConnection pushes what became of a connection, with the VU's tags and the script's.
func (m *module) reportConnection(c *Connection) {
	set := m.tags(c)
	samples := []metrics.Sample{sampleOf(m.metrics.open, set, float64(c.open))}
	for metric, took := range map[*metrics.Metric]float64{m.metrics.tcp: c.TCPMs, m.metrics.tls: c.TLSMs, m.metrics.answer: c.AnswerMs} {
		if took > 0 {
			samples = append(samples, sampleOf(metric, set, took))
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
	if !c.OK {
		samples = append(samples, sampleOf(m.metrics.failed, set.With("cause", c.Cause), 1))
	}
	metrics.PushIfNotDone(m.vu.Context(), m.vu.State().Samples, metrics.Samples(samples))
}

func sampleOf(metric *metrics.Metric, tags *metrics.TagSet, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: time.Now(), Value: value}
}
