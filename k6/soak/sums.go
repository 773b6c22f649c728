package soak

import (
	"cmp"
	"maps"
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

// Bounds of the sums, so that a script that puts an id into a tag fills neither memory nor shard.
const (
	maxSeries = 5000
	maxCached = 20_000
)

// seriesOf finds the sum that a sample belongs to, by the name of its metric and the tags that
// the suite splits by.
func (s *sums) seriesOf(sample metrics.Sample) *shard.Metric {
	if m := s.cache[sample.TimeSeries]; m != nil {
		return m
	}
	key, tags := sample.Metric.Name, map[string]string(nil)
	for _, name := range s.splitBy {
		if value, ok := sample.Tags.Get(name); ok && value != "" {
			if tags == nil {
				tags = map[string]string{}
			}
			tags[name] = value
			key += "\x00" + name + "\x00" + value
		}
	}
	m := s.metrics[key]
	if m == nil && tags != nil && len(s.metrics) >= maxSeries {
		tags = map[string]string{s.splitBy[0]: shard.Other}
		key = sample.Metric.Name + "\x00" + shard.Other
		m = s.metrics[key]
	}
	if m == nil {
		m = &shard.Metric{Name: sample.Metric.Name, Tags: tags, Type: sample.Metric.Type.String(), Min: sample.Value, Max: sample.Value}
		if sample.Metric.Type == metrics.Trend {
			m.Trend = shard.NewHistogram()
			if m.Name == shard.RequestDuration && s.added != nil {
				m.Own = shard.NewHistogram()
			}
		}
		s.metrics[key] = m
	}
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[sample.TimeSeries] = m
	return m
}

// addTimes adds what a suite needs in addition to the sums: start and end of a series, and the squares for its standard deviation.
func (s *sums) addTimes(m *shard.Metric, sample metrics.Sample) {
	ended := sample.Time.UnixMicro()
	began := ended
	if m.Trend != nil {
		m.Squares += sample.Value * sample.Value
		if sample.Metric.Contains == metrics.Time {
			began -= int64(sample.Value * 1000)
		}
	}
	if m.FirstUS == 0 || began < m.FirstUS {
		m.FirstUS = began
	}
	m.LastUS = max(m.LastUS, ended)
	if m.Name == shard.RequestDuration && m.Tags[shard.TagStage] != shard.Other {
		s.stage = m.Tags[shard.TagStage]
	}
}

// progress adds the counts of requests for the progress line.
func (s *sums) progress(p *shard.Progress) {
	p.Stage = s.stage
	for _, m := range s.metrics {
		p.CountRequests(m)
	}
}

// list copies the sums, sorted.
func (s *sums) list() []shard.Metric {
	out := make([]shard.Metric, 0, len(s.metrics))
	for _, key := range slices.Sorted(maps.Keys(s.metrics)) {
		c := *s.metrics[key]
		c.Trend, c.Own = c.Trend.Copy(), c.Own.Copy()
		out = append(out, c)
	}
	return out
}
