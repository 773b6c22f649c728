package soak

import (
	"slices"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A snapshot is the state of this runner for metrics and dashboards. No verdict depends on it. telemetry.state sets the
// first fields, and telemetry.publish the others.
type snapshot struct {
	shard.Progress
	planned   int               // streams of the whole run, over all its runners
	runners   int               // of the whole run
	remaining time.Duration     // until the first streams of the plan end
	noun      string            // the service's word for a message
	lateness  *shard.Histogram  // of this runner since its start
	responses *responseSnapshot // nil if the run has no finite responses
	control   *controlGroup     // nil: none

	open            int                // open streams and attempts
	reports         int                // snapshots so far
	recent          *shard.Histogram   // lateness since the previous snapshot; nil: no message arrived
	self            shard.ProcessUsage // resources of this runner
	controlLateness *time.Duration     // maximum of the control group since the previous snapshot; nil: no event arrived
}

// A metric is a metric of k6 whose value is derived from a snapshot. load-tests/types/soak.d.ts documents the metrics.
type metric struct {
	name  string
	kind  metrics.MetricType
	value func(*snapshot) float64
}

// metricsOf lists the metrics of a run of endless streams, by the service's word for a message.
var metricsOf = map[string][]metric{
	"noop": slices.Concat(countMetrics("noops"), streamRunMetrics),
	"message": slices.Concat(countMetrics("messages"), streamRunMetrics, []metric{
		{"soak_published", metrics.Counter, func(s *snapshot) float64 { return float64(s.Published) }},
		{"soak_confirmed", metrics.Counter, func(s *snapshot) float64 { return float64(s.Confirmed) }},
		{"soak_heartbeats", metrics.Counter, func(s *snapshot) float64 { return float64(s.Heartbeats) }},
	}),
}

// streamRunMetrics are the metrics of endless streams whose names do not depend on the service's word for a message.
var streamRunMetrics = append([]metric{
	{"soak_streams_planned", metrics.Gauge, func(s *snapshot) float64 { return float64(s.planned) }},
	{"soak_streams_completed", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Completed) }},
	{"soak_streams_dropped", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Dropped) }},
	{"soak_streams_refused", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Refused) }},
	{"soak_streams_reconnected", metrics.Gauge, func(s *snapshot) float64 { return float64(s.Reconnected) }},
	{"soak_remaining_seconds", metrics.Gauge, func(s *snapshot) float64 { return s.remaining.Seconds() }},
}, runnerMetrics...)

// runnerMetrics are the metrics of each runner in every suite with event streams.
var runnerMetrics = []metric{
	{"soak_runners_planned", metrics.Gauge, func(s *snapshot) float64 { return float64(s.runners) }},
	{"soak_streams_open", metrics.Gauge, func(s *snapshot) float64 { return float64(s.open) }},
	{"soak_reports", metrics.Counter, func(s *snapshot) float64 { return float64(s.reports) }},
	{"soak_rss_bytes", metrics.Gauge, func(s *snapshot) float64 { return float64(s.self.RSS) }},
	{"soak_cpu_percent", metrics.Gauge, func(s *snapshot) float64 { return s.self.CPUPercent }},
}

// countMetrics returns the metrics of the counts of noops or messages. A count that may decrease is a gauge. Counts
// decrease when a late noop fills a gap, or a noop is recognized as a duplicate.
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

// latenessMetrics are published only if a message has arrived since the previous snapshot.
var latenessMetrics = []metric{
	{"soak_lateness_p50_seconds", metrics.Gauge, quantile(.5)},
	{"soak_lateness_p99_seconds", metrics.Gauge, quantile(.99)},
	{"soak_lateness_max_seconds", metrics.Gauge, func(s *snapshot) float64 { return s.recent.Max().Seconds() }},
}

// controlMetrics are published only if an event of the control group has arrived since the previous snapshot.
var controlMetrics = []metric{
	{"soak_control_lateness_max_seconds", metrics.Gauge, func(s *snapshot) float64 { return s.controlLateness.Seconds() }},
}

// actionMetric is 0 before the planned start of an action, and 1 after it. The tag `action` contains its name.
const actionMetric = "soak_action"

// quantile returns the value function of a metric: a quantile of the recent lateness, in seconds.
func quantile(q float64) func(*snapshot) float64 {
	return func(s *snapshot) float64 { return s.recent.Quantile(q).Seconds() }
}

// The metrics of phases, steps and broadcasts, by kind. Times are in milliseconds.
var (
	holdCounters = []string{
		vanishVanished, stormDropped, fanoutDue, fanoutArrived, fanoutDuplicated, fanoutOverdue, fanoutUntimed, fanoutUnexpected, fanoutShort,
		slowStarted, slowAccepted, slowRejected, slowDue, slowArrived, slowRepeated, slowFilled, slowClosedLater, slowComplete,
	}
	holdTimes = []string{stormDialDelay, stormConnect, stepConnect, fanoutLatency, fanoutLast, fanoutSinceRequest, fanoutPost, slowClosed}
)

func registerHoldMetrics(registry *metrics.Registry, byName map[string]*metrics.Metric) {
	for _, name := range holdCounters {
		byName[name] = registry.MustNewMetric(name, metrics.Counter)
	}
	for _, name := range holdTimes {
		byName[name] = registry.MustNewMetric(name, metrics.Trend, metrics.Time)
	}
	byName[stepStreams] = registry.MustNewMetric(stepStreams, metrics.Gauge)
	byName[slowBacklog] = registry.MustNewMetric(slowBacklog, metrics.Trend)
}
