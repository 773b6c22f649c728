package sse

import (
	"strconv"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// An sseMetrics has the metrics of the module. sse.d.ts documents them for users.
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

// sample returns one sample of metric m.
func sample(m *metrics.Metric, tm *metrics.TagsAndMeta, at time.Time, value float64) metrics.Sample {
	return metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: m, Tags: tm.Tags},
		Time:       at,
		Value:      value,
		Metadata:   tm.Metadata,
	}
}
