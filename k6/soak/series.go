package soak

import (
	"cmp"
	"maps"
	"slices"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

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

// addTimes adds what a suite needs beside the sums: when a series began and ended, and the squares for its
// standard deviation.
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
	if m.Name == shard.RequestDuration {
		s.stage = m.Tags[shard.TagStage]
	}
}

// progress adds the counts of requests for the progress line.
func (s *sums) progress(p *shard.Progress) {
	p.Stage = s.stage
	for _, m := range s.metrics {
		if m.Name != shard.RequestDuration {
			continue
		}
		p.Requests += m.Count
		if m.Tags[shard.TagCode] != shard.CodeOK {
			p.Failed += m.Count
		}
	}
}

// list copies the sums, sorted.
func (s *sums) list() []shard.Metric {
	out := make([]shard.Metric, 0, len(s.metrics))
	for _, key := range slices.SortedFunc(maps.Keys(s.metrics), cmp.Compare) {
		c := *s.metrics[key]
		c.Trend, c.Own = copied(c.Trend), copied(c.Own)
		out = append(out, c)
	}
	return out
}

func copied(h *shard.Histogram) *shard.Histogram {
	if h == nil {
		return nil
	}
	out := shard.NewHistogram()
	out.Merge(h)
	return out
}
