package soak

import (
	"math"
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// bucketMetric counts messages by their lateness: those of at most `le` seconds, as Prometheus has its histograms, so that the
// counters of all runners add up. They are read off the histogram that there is, and cost nothing per message.
const bucketMetric = "soak_lateness_bucket"

// Upper bounds of buckets but the last, which has none. One is LATE_MS by default.
var bounds = []time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
}

// bucketsOf are samples of what the buckets grew by.
func (p *telemetry) bucketsOf(lateness *shard.Histogram, tags *metrics.TagSet) (out metrics.Samples) {
	now, atMost := time.Now(), 0.
	if p.buckets == nil {
		p.buckets = make([]float64, len(bounds)+1)
	}
	for i, n := range lateness.CountBy(bounds) {
		atMost += float64(n)
		le := math.Inf(1)
		if i < len(bounds) {
			le = bounds[i].Seconds()
		}
		out = append(out, metrics.Sample{
			TimeSeries: metrics.TimeSeries{Metric: p.metrics[bucketMetric], Tags: tags.With("le", strconv.FormatFloat(le, 'g', -1, 64))},
			Time:       now, Value: atMost - p.buckets[i],
		})
		p.buckets[i] = atMost
	}
	return out
}
