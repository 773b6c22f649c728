package handshake

import (
	"sync/atomic"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// handshakeMetrics holds the metrics of the module. handshake.d.ts documents them for users.
type handshakeMetrics struct {
	tcp    *metrics.Metric // trend, time: completed dials
	tls    *metrics.Metric // trend, time: completed handshakes
	answer *metrics.Metric // trend, time: request to the end of the response
	failed *metrics.Metric // counter, by cause
	open   *metrics.Metric // gauge: connections open in this process
	// Counters of bytes on the wire: of all connections, and of completed TLS handshakes.
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

// A traffic value is the number of bytes of TLS records in each direction, without the headers of TCP and IP.
type traffic struct{ sent, received int64 }

// trafficOf returns the traffic of a connection below TLS; zero if conn is nil.
func trafficOf(conn *sseclient.Conn) traffic {
	if conn == nil {
		return traffic{}
	}
	return traffic{atomic.LoadInt64(conn.Sent), atomic.LoadInt64(conn.Received)}
}

// reportConnection pushes the samples of a new connection, with the tags of the VU and of the call.
func (m *module) reportConnection(c *Connection) {
	tags := m.tagsOf(c)
	samples := make([]metrics.Sample, 0, 9)
	if c.openCount > 0 { // the dial succeeded
		samples = append(samples, sampleOf(m.metrics.open, tags, float64(c.openCount)))
	}
	for _, phase := range [...]struct {
		metric *metrics.Metric
		value  float64
	}{
		{m.metrics.tcp, c.TCPMs}, {m.metrics.tls, c.TLSMs}, {m.metrics.answer, c.AnswerMs},
		{m.metrics.tlsSent, float64(c.handshake.sent)}, {m.metrics.tlsReceived, float64(c.handshake.received)},
	} {
		if phase.value > 0 {
			samples = append(samples, sampleOf(phase.metric, tags, phase.value))
		}
	}
	m.push(c, tags, samples)
}

// reportResponse pushes the samples of a further request on an open connection.
func (m *module) reportResponse(c *Connection) {
	tags := m.tagsOf(c)
	var samples []metrics.Sample
	if c.OK || Cause(c.Cause) == causeStatus { // a response arrived
		samples = append(samples, sampleOf(m.metrics.answer, tags, c.AnswerMs))
	}
	m.push(c, tags, samples)
}

func (m *module) tagsOf(c *Connection) *metrics.TagSet {
	return m.vu.State().Tags.GetCurrentValues().Tags.WithTagsFromMap(c.request.tags)
}

// push pushes samples, the traffic since the last push and, if the connection failed, a failure tagged with its cause.
func (m *module) push(c *Connection, tags *metrics.TagSet, samples []metrics.Sample) {
	total := trafficOf(c.wire)
	if added := (traffic{total.sent - c.reportedTraffic.sent, total.received - c.reportedTraffic.received}); added != (traffic{}) {
		samples = append(samples, sampleOf(m.metrics.sent, tags, float64(added.sent)), sampleOf(m.metrics.received, tags, float64(added.received)))
	}
	c.reportedTraffic = total
	if !c.OK {
		samples = append(samples, sampleOf(m.metrics.failed, tags.With("cause", c.Cause), 1))
	}
	metrics.PushIfNotDone(m.vu.Context(), m.vu.State().Samples, metrics.Samples(samples))
}

func sampleOf(metric *metrics.Metric, tags *metrics.TagSet, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tags}, Time: time.Now(), Value: value}
}
