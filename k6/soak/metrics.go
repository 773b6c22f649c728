package soak

import (
	"slices"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A snapshot is the state of this runner for metrics and dashboards. No verdict depends on it.
type snapshot struct {
	shard.Progress
	planned int              // streams of the whole run, over all its runners
	runners int              // of the whole run
	open    int              // streams, and attempts at one, that are not over
	reports int              // snapshots so far
	recent  *shard.Histogram // lateness since the snapshot before; nil: none came
	control *time.Duration   // longest lateness of the control group since then; nil: no event came
	left    time.Duration    // until the first streams of the plan end
	self    shard.Process
}

// A metric is one of k6, and how it follows from a snapshot; load-tests/types/soak.d.ts documents them.
type metric struct {
	name  string
	kind  metrics.MetricType
	value func(*snapshot) float64
}

// published are the metrics of every snapshot, by the service's name for a message.
var published = map[string][]metric{
	"noop": slices.Concat(countMetrics("noops"), everyRun),
	"message": slices.Concat(countMetrics("messages"), everyRun, []metric{
		{"soak_published", metrics.Counter, func(s *snapshot) float64 { return float64(s.Published) }},
		{"soak_confirmed", metrics.Counter, func(s *snapshot) float64 { return float64(s.Confirmed) }},
		{"soak_heartbeats", metrics.Counter, func(s *snapshot) float64 { return float64(s.Heartbeats) }},
	}),
}

// everyRun are the metrics of a run of endless streams.
var everyRun = append([]metric{
	{"soak_streams_planned", metrics.Gauge, func(s *snapshot) float64 { return float64(s.planned) }},
	{"soak_streams_completed", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Completed) }},
	{"soak_streams_dropped", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Dropped) }},
	{"soak_streams_refused", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Refused) }},
	{"soak_streams_reconnected", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Reconnected) }},
	{"soak_remaining_seconds", metrics.Gauge, func(s *snapshot) float64 { return s.left.Seconds() }},
}, ofRunner...)

// ofRunner are the metrics of each runner, whatever the suite.
var ofRunner = []metric{
	{"soak_runners_planned", metrics.Gauge, func(s *snapshot) float64 { return float64(s.runners) }},
	{"soak_streams_open", metrics.Gauge, func(s *snapshot) float64 { return float64(s.open) }},
	{"soak_reports", metrics.Counter, func(s *snapshot) float64 { return float64(s.reports) }},
	{"soak_rss_bytes", metrics.Gauge, func(s *snapshot) float64 { return float64(s.self.RSS) }},
	{"soak_cpu_percent", metrics.Gauge, func(s *snapshot) float64 { return s.self.CPUPercent }},
}

// countMetrics returns the metrics of the counts of noops or messages. A count that may decrease is a gauge: a late
// noop fills a hole, or a noop turns out to be a copy.
func countMetrics(nouns string) (out []metric) {
	for i, n := range (ledger.Totals{}).Each() {
		m := metric{"soak_" + nouns + "_" + n.Name, metrics.Gauge, func(s *snapshot) float64 { return float64(s.Totals().Each()[i].Count) }}
		switch n.Name {
		case "received":
			m.name, m.kind = "soak_"+nouns, metrics.Counter
		case "late":
			m.kind = metrics.Counter
		}
		out = append(out, m)
	}
	return out
}

// publishedLateness are the metrics that exist only if messages came.
var publishedLateness = []metric{
	{"soak_lateness_p50_seconds", metrics.Gauge, quantile(.5)},
	{"soak_lateness_p99_seconds", metrics.Gauge, quantile(.99)},
	{"soak_lateness_max_seconds", metrics.Gauge, func(s *snapshot) float64 { return s.recent.Max().Seconds() }},
}

// publishedControl exists only if events of the control group came.
var publishedControl = []metric{
	{"soak_control_lateness_max_seconds", metrics.Gauge, func(s *snapshot) float64 { return s.control.Seconds() }},
}

// actionMetric is 1 from the planned start of an action of the run on, 0 before; the tag `action` has its name.
const actionMetric = "soak_action"

func quantile(q float64) func(*snapshot) float64 {
	return func(s *snapshot) float64 { return s.recent.Quantile(q).Seconds() }
}

// holdMetrics are those of phases, steps and broadcasts, by kind. Times are in milliseconds.
var (
	holdCounters = []string{
		vanished, stormDropped, fanoutDue, fanoutArrived, fanoutDuplicated, fanoutOverdue, fanoutUntimed, fanoutUnexplained, fanoutShort,
		slowStarted, slowAccepted, slowRejected, slowDue, slowArrived, slowRepeated, slowFilled, slowCutUnseen, slowComplete,
	}
	holdTimes = []string{stormWaited, stormConnect, capacityConnect, fanoutLatency, fanoutLast, fanoutSinceRequest, fanoutPost, slowCut}
)

// registerHoldMetrics registers them.
func registerHoldMetrics(registry *metrics.Registry, to map[string]*metrics.Metric) {
	for _, name := range holdCounters {
		to[name] = registry.MustNewMetric(name, metrics.Counter)
	}
	for _, name := range holdTimes {
		to[name] = registry.MustNewMetric(name, metrics.Trend, metrics.Time)
	}
	to[capacityStreams] = registry.MustNewMetric(capacityStreams, metrics.Gauge)
	to[slowBacklog] = registry.MustNewMetric(slowBacklog, metrics.Trend)
}
