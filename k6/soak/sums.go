package soak

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/shard"
)

// sums adds up k6's own metrics in forms that can be merged over runners. k6's summary keeps
// percentiles, which cannot.
type sums struct {
	metrics map[string]*shard.Metric
	checks  map[string]*shard.Check
}

func newSums() *sums {
	return &sums{metrics: map[string]*shard.Metric{}, checks: map[string]*shard.Check{}}
}

func (s *sums) add(containers []metrics.SampleContainer) {
	for _, c := range containers {
		for _, sample := range c.GetSamples() {
			s.addSample(sample)
		}
	}
}

func (s *sums) addSample(sample metrics.Sample) {
	name := sample.Metric.Name
	sample.Value = finite(sample.Value)
	m := s.metrics[name]
	if m == nil {
		m = &shard.Metric{Name: name, Type: sample.Metric.Type.String(), Min: sample.Value, Max: sample.Value}
		if sample.Metric.Type == metrics.Trend {
			m.Trend = shard.NewHistogram()
		}
		s.metrics[name] = m
	}
	m.Count++
	m.Sum += sample.Value
	m.Min, m.Max = min(m.Min, sample.Value), max(m.Max, sample.Value)
	if m.Trend != nil { // k6 keeps times in milliseconds; other values keep three decimals
		m.Trend.Record(time.Duration(min(sample.Value, 1e9) * float64(time.Millisecond)))
	}
	if name == metrics.ChecksName {
		s.addCheck(sample)
	}
}

func (s *sums) addCheck(sample metrics.Sample) {
	name, _ := sample.Tags.Get("check")
	c := s.checks[name]
	if c == nil {
		c = &shard.Check{Name: name}
		s.checks[name] = c
	}
	if sample.Value != 0 {
		c.Passes++
	} else {
		c.Fails++
	}
}

// finite keeps a value that a script made up from spoiling its metric, and the shard: JSON
// holds neither NaN nor infinity. Within the bound a sum stays finite too.
func finite(v float64) float64 {
	const most = 1e15 // a trend in nanoseconds, and over 30 years in milliseconds
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -most), most)
}

func (s *sums) fill(out *shard.Shard) {
	out.Metrics = make([]shard.Metric, 0, len(s.metrics))
	for _, m := range s.metrics {
		c := *m
		if m.Trend != nil {
			c.Trend = shard.NewHistogram()
			c.Trend.Merge(m.Trend)
		}
		out.Metrics = append(out.Metrics, c)
	}
	slices.SortFunc(out.Metrics, func(a, b shard.Metric) int { return cmp.Compare(a.Name, b.Name) })
	out.Checks = make([]shard.Check, 0, len(s.checks))
	for _, c := range s.checks {
		out.Checks = append(out.Checks, *c)
	}
	slices.SortFunc(out.Checks, func(a, b shard.Check) int { return cmp.Compare(a.Name, b.Name) })
}
