package soak

import (
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A tally is what this runner has seen so far, for metrics and dashboards: no verdict rests on it.
type tally struct {
	planned int           // streams of the whole run, over all its runners
	sum     ledger.Record // the counts of all connections
	states  map[ledger.State]int
	again   int // streams that were opened after another was lost

	all    *shard.Histogram // lateness since the start
	recent *shard.Histogram // lateness since the tally before; nil: no noop came
	self   sample
}

// tally counts all ledgers. before is the lateness of the tally before, nil for none.
func (r *recorder) tally(before *shard.Histogram) tally {
	all, ledgers := r.moment()
	t := tally{planned: r.connections(), states: map[ledger.State]int{}, all: all}
	for _, l := range ledgers {
		t.add(l.Sums())
	}
	switch {
	case before == nil && all.Count() > 0:
		t.recent = all
	case before != nil && all.Count() > before.Count():
		t.recent = all.Since(before)
	}
	return t
}

func (t *tally) add(r ledger.Record) {
	t.states[r.State]++
	t.again += max(r.Streams-1, 0)
	s := &t.sum
	s.Received += r.Received
	s.Lost += r.Lost
	s.Unsent += r.Unsent
	s.Tail += r.Tail
	s.Duplicated += r.Duplicated
	s.Reordered += r.Reordered
	s.Corrupted += r.Corrupted
	s.Late += r.Late
}

// A figure is a metric of k6, and how it follows from a tally; load-tests/types/soak.d.ts documents them.
type figure struct {
	name string
	kind metrics.MetricType
	of   func(*tally) float64
}

// figures are the metrics of a tally. A count that may go down again is a gauge: a late noop fills a hole, or
// a noop turns out to be a copy.
var figures = []figure{
	{"soak_noops", metrics.Counter, func(t *tally) float64 { return float64(t.sum.Received) }},
	{"soak_noops_late", metrics.Counter, func(t *tally) float64 { return float64(t.sum.Late) }},
	{"soak_noops_expected", metrics.Gauge, func(t *tally) float64 { return float64(t.sum.Expected()) }},
	{"soak_noops_missed", metrics.Gauge, func(t *tally) float64 { return float64(t.sum.Missed()) }},
	{"soak_noops_duplicated", metrics.Gauge, func(t *tally) float64 { return float64(t.sum.Duplicated) }},
	{"soak_noops_reordered", metrics.Gauge, func(t *tally) float64 { return float64(t.sum.Reordered) }},
	{"soak_noops_corrupted", metrics.Gauge, func(t *tally) float64 { return float64(t.sum.Corrupted) }},
	{"soak_streams_planned", metrics.Gauge, func(t *tally) float64 { return float64(t.planned) }},
	{"soak_streams_completed", metrics.Gauge, func(t *tally) float64 { return float64(t.states[ledger.Completed]) }},
	{"soak_streams_dropped", metrics.Gauge, func(t *tally) float64 { return float64(t.states[ledger.Dropped]) }},
	{"soak_streams_refused", metrics.Gauge, func(t *tally) float64 { return float64(t.states[ledger.Refused]) }},
	{"soak_streams_reconnected", metrics.Gauge, func(t *tally) float64 { return float64(t.again) }},
	{"soak_rss_bytes", metrics.Gauge, func(t *tally) float64 { return float64(t.self.rss) }},
	{"soak_cpu_percent", metrics.Gauge, func(t *tally) float64 { return t.self.cpuPercent }},
}

// lateness are the metrics that exist only if noops came.
var lateness = []figure{
	{"soak_lateness_p50_seconds", metrics.Gauge, quantile(.5)},
	{"soak_lateness_p99_seconds", metrics.Gauge, quantile(.99)},
	{"soak_lateness_max_seconds", metrics.Gauge, func(t *tally) float64 { return t.recent.Max().Seconds() }},
}

func quantile(q float64) func(*tally) float64 {
	return func(t *tally) float64 { return t.recent.Quantile(q).Seconds() }
}
