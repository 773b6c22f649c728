package soak

import (
	"cmp"
	"math"
	"slices"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// sums adds up k6's own metrics in a form that can be merged over runners. k6's summary has percentiles,
// which cannot be merged.
type sums struct {
	splitBy []string // tags, of a suite
	metrics map[string]*shard.Metric
	cache   map[metrics.TimeSeries]*shard.Metric // what seriesOf found before
	checks  map[string]*shard.Check
	stage   string                                 // of the last request
	added   func(from, to time.Time) time.Duration // the most that this process can have added to a time; nil: not known
}

func newSums() *sums {
	return &sums{
		metrics: map[string]*shard.Metric{}, checks: map[string]*shard.Check{},
		cache: map[metrics.TimeSeries]*shard.Metric{},
	}
}

func (s *sums) add(containers []metrics.SampleContainer) {
	for _, c := range containers {
		for _, sample := range c.GetSamples() {
			s.addSample(sample)
		}
	}
}

func (s *sums) addSample(sample metrics.Sample) {
	sample.Value = finite(sample.Value)
	m := s.seriesOf(sample)
	m.Count++
	m.Sum += sample.Value
	m.Min, m.Max = min(m.Min, sample.Value), max(m.Max, sample.Value)
	if m.Trend != nil { // k6 keeps times in milliseconds; other values keep three decimals
		took := time.Duration(min(sample.Value, 1e9) * float64(time.Millisecond))
		m.Trend.Record(took)
		if m.Own != nil {
			m.Own.Record(max(took-s.added(sample.Time.Add(-took), sample.Time), 0))
		}
	}
	if s.splitBy != nil {
		s.addTimes(m, sample)
	}
	if sample.Metric.Name == metrics.ChecksName {
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

// finite makes a value of a script finite, because JSON has neither NaN nor infinity. Within the bound
// a sum stays finite too.
func finite(v float64) float64 {
	const most = 1e15 // a trend in nanoseconds, and over 30 years in milliseconds
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -most), most)
}

func (s *sums) fill(out *shard.Shard) {
	out.Metrics = s.list()
	out.Checks = make([]shard.Check, 0, len(s.checks))
	for _, c := range s.checks {
		out.Checks = append(out.Checks, *c)
	}
	slices.SortFunc(out.Checks, func(a, b shard.Check) int { return cmp.Compare(a.Name, b.Name) })
}
