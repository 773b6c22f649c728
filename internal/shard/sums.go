package shard

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// addLatency keeps the differences above the fastest noop of each runner, whose clock is one:
// clocks of two hosts cannot be compared more closely than that.
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

func (m *Merged) addChecks(checks []Check) {
	for _, c := range checks {
		i := slices.IndexFunc(m.Checks, func(have Check) bool { return have.Name == c.Name })
		if i < 0 {
			m.Checks = append(m.Checks, c)
			continue
		}
		m.Checks[i].Passes += c.Passes
		m.Checks[i].Fails += c.Fails
	}
	slices.SortFunc(m.Checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
}

func addMetrics(sums map[string]*Metric, all []Metric) {
	for _, n := range all {
		key := n.key()
		have := sums[key]
		if have == nil {
			n.Trend, n.Own = n.Trend.Copy(), n.Own.Copy()
			sums[key] = &n
			continue
		}
		if have.Own != nil || n.Own != nil { // without it of one, nothing that took time there is excused
			have.Own = cmp.Or(have.Own, have.Trend.Copy())
			have.Own.Merge(cmp.Or(n.Own, n.Trend))
		}
		have.Sum += n.Sum
		have.Squares += n.Squares
		have.Min, have.Max = min(have.Min, n.Min), max(have.Max, n.Max)
		have.FirstUS, have.LastUS = min(have.FirstUS, n.FirstUS), max(have.LastUS, n.LastUS)
		have.Count += n.Count
		if have.Trend != nil {
			have.Trend.Merge(n.Trend)
		}
	}
}

func sortedMetrics(sums map[string]*Metric) []Metric {
	out := make([]Metric, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[key])
	}
	return out
}
