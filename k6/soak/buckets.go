package soak

import (
	"math"
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A bucketMetric counts durations of at most `le` seconds, like a Prometheus histogram. The counters of all runners can
// be added. bucketsOf derives the counts from an existing histogram, so counting costs nothing per message.
type bucketMetric struct {
	name   string
	bounds []time.Duration // upper bounds of all buckets except the last, which has none
}

// latenessBuckets includes the default of LATE_MS as a bound.
var latenessBuckets = bucketMetric{"soak_lateness_bucket", []time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
}}

// bucketsOf returns samples of the growth of the buckets since the last call.
func (p *telemetry) bucketsOf(m *bucketMetric, durations *shard.Histogram, tags *metrics.TagSet) (out metrics.Samples) {
	cumulative := 0.
	reported := p.buckets[m.name]
	if reported == nil {
		reported = make([]float64, len(m.bounds)+1)
		p.buckets[m.name] = reported
	}
	for i, n := range durations.CountBy(m.bounds) {
		cumulative += float64(n)
		le := math.Inf(1)
		if i < len(m.bounds) {
			le = m.bounds[i].Seconds()
		}
		out = append(out, p.sampleOf(m.name, tags.With("le", strconv.FormatFloat(le, 'g', -1, 64)), cumulative-reported[i]))
		reported[i] = cumulative
	}
	return out
}
