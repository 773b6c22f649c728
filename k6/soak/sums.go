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

// A sums value adds up the metrics of k6, in a form that can be merged across runners. The percentiles of k6's summary
// cannot be merged.
type sums struct {
	splitBy  []string // tags by which a suite splits the metrics
	metrics  map[string]*shard.Metric
	cache    map[metrics.TimeSeries]*shard.Metric // results of seriesOf
	checks   map[string]*shard.ScriptCheck
	stage    string                                 // of the last request
	maxDelay func(from, to time.Time) time.Duration // waits.maxDelay; nil: not measured
	wall     func(time.Time) time.Time              // tally.wall, so that a step of the clock puts no sample outside the run
}

func newSums() *sums {
	return &sums{
		metrics: map[string]*shard.Metric{}, checks: map[string]*shard.ScriptCheck{},
		cache: map[metrics.TimeSeries]*shard.Metric{}, wall: func(at time.Time) time.Time { return at },
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
	sample.Value = clampFinite(sample.Value)
	m := s.seriesOf(sample)
	m.Count++
	m.Sum += sample.Value
	m.Min, m.Max = min(m.Min, sample.Value), max(m.Max, sample.Value)
	if m.Trend != nil { // times of k6 are in milliseconds; other values are recorded as if they were
		duration := time.Duration(min(sample.Value, 1e9) * float64(time.Millisecond))
		m.Trend.Record(duration)
		if m.Undelayed != nil {
			m.Undelayed.Record(max(duration-s.maxDelay(sample.Time.Add(-duration), sample.Time), 0))
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
		c = &shard.ScriptCheck{Name: name}
		s.checks[name] = c
	}
	if sample.Value != 0 {
		c.Passes++
	} else {
		c.Fails++
	}
}

// clampFinite limits a value to ±1e15 and replaces NaN with 0, because JSON has neither NaN nor infinity. With this
// limit, sums stay finite, too.
func clampFinite(v float64) float64 {
	const limit = 1e15 // over 30,000 years in milliseconds
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -limit), limit)
}

func (s *sums) fill(out *shard.Shard) {
	out.Metrics = s.list()
	out.Checks = make([]shard.ScriptCheck, 0, len(s.checks))
	for _, c := range s.checks {
		out.Checks = append(out.Checks, *c)
	}
	slices.SortFunc(out.Checks, func(a, b shard.ScriptCheck) int { return cmp.Compare(a.Name, b.Name) })
}

// Limits of the sums, for scripts that use ids as tags.
const (
	maxSeries = 5000
	maxCached = 20_000
)

// seriesOf returns the sum to which a sample belongs, by its metric and the tags in splitBy. When there are maxSeries
// sums, new combinations of tags share one sum per metric.
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
			if m.Name == shard.RequestDuration && s.maxDelay != nil {
				m.Undelayed = shard.NewHistogram()
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

// addTimes adds the data that only suites need: start and end of a series, and the stage of the last request. For a
// trend, it also adds the squares for the standard deviation.
func (s *sums) addTimes(m *shard.Metric, sample metrics.Sample) {
	end := s.wall(sample.Time).UnixMicro()
	start := end
	if m.Trend != nil {
		m.Squares += sample.Value * sample.Value
		if sample.Metric.Contains == metrics.Time {
			start -= int64(sample.Value * 1000)
		}
	}
	if m.FirstUS == 0 || start < m.FirstUS {
		m.FirstUS = start
	}
	m.LastUS = max(m.LastUS, end)
	if m.Name == shard.RequestDuration && m.Tags[shard.TagStage] != shard.Other {
		s.stage = m.Tags[shard.TagStage]
	}
}

func (s *sums) progress(p *shard.Progress) {
	p.Stage = s.stage
	for _, m := range s.metrics {
		p.CountRequests(m)
	}
}

func (s *sums) list() []shard.Metric {
	out := make([]shard.Metric, 0, len(s.metrics))
	for _, key := range slices.Sorted(maps.Keys(s.metrics)) {
		c := *s.metrics[key]
		c.Trend, c.Undelayed = c.Trend.Copy(), c.Undelayed.Copy()
		out = append(out, c)
	}
	return out
}
