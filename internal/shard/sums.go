package shard

import (
	"cmp"
	"slices"
	"time"
)

// addLatency adds the latencies of another runner, relative to its fastest message: the clocks of hosts may differ.
func (m *Merged) addLatency(l *Latency) {
	if l == nil || l.Histogram.Count() == 0 {
		return
	}
	if m.Latency == nil {
		m.Latency = &Latency{MinUS: l.MinUS, Histogram: NewHistogram()}
	}
	m.Latency.MinUS = min(m.Latency.MinUS, l.MinUS)
	m.Latency.Histogram.MergeShifted(l.Histogram, -time.Duration(l.OffsetUS+l.MinUS)*time.Microsecond)
}

func (m *Merged) addChecks(checks []ScriptCheck) {
	for _, c := range checks {
		i := slices.IndexFunc(m.Checks, func(have ScriptCheck) bool { return have.Name == c.Name })
		if i < 0 {
			m.Checks = append(m.Checks, c)
			continue
		}
		m.Checks[i].Passes += c.Passes
		m.Checks[i].Fails += c.Fails
	}
	slices.SortFunc(m.Checks, func(a, b ScriptCheck) int { return cmp.Compare(a.Name, b.Name) })
}

// addMetrics adds metrics to sums by key, and does not modify their histograms.
func addMetrics(sums map[string]*Metric, all []Metric) {
	for _, n := range all {
		key := n.key()
		have := sums[key]
		if have == nil {
			n.Trend, n.Undelayed = n.Trend.Copy(), n.Undelayed.Copy()
			sums[key] = &n
			continue
		}
		have.Merge(n)
	}
}

// Merge adds a metric with the same key. It modifies the histograms of n.
func (n *Metric) Merge(other Metric) {
	n.Sum += other.Sum
	n.Squares += other.Squares
	n.Min, n.Max = min(n.Min, other.Min), max(n.Max, other.Max)
	n.FirstUS, n.LastUS = min(n.FirstUS, other.FirstUS), max(n.LastUS, other.LastUS)
	n.Count += other.Count
	if n.Trend != nil {
		n.Trend.Merge(other.Trend)
	}
	if n.Undelayed != nil {
		n.Undelayed.Merge(other.Undelayed)
	}
}
