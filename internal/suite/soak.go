package suite

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// soak opens all streams and keeps them for the whole run. It is the run that one gets without naming a suite: its
// plan.json has no field for the suite, and its script declares none.
var soak = Suite{
	Name:    "soak",
	Short:   "hold every event stream for the whole time, and account for every noop of each",
	Script:  []string{"load-tests", "sse", "connectionTest.js"},
	Streams: true, Planned: true, Summary: true, Optional: true, Runners: 2, Samples: resources.Every, Doc: "docs/math.md",
	Page: []string{
		"criteria", "plan", "account", "published", "timelines", "lateness", "leaks", "spikes", "ends", "arithmetic", "comparison", "headroom", "data",
	},
	Assess: assessSoak, Metrics: soakMetrics,
}

func assessSoak(r *Run) verdict.Assessment {
	s := r.streams()
	return verdict.Assessment{
		Streams: s, Warnings: s.Warnings, Passed: s.Passed(),
		Criteria: slices.Concat(s.Faults(), s.HeldThroughout(), []verdict.Criterion{s.KeptUp()}, s.Agreement()),
		Doubts:   []verdict.Criterion{s.Unnoticed()},
	}
}

// soakMetrics leaves latency out where no time of sending was known.
func soakMetrics(v *verdict.Verdict) []verdict.Metric {
	out := []verdict.Metric{
		{Name: "lateness p99", Unit: "ms", Value: v.LatenessMS.P99},
		{Name: "connect p50", Unit: "ms", Value: v.ConnectMS.P50},
		{Name: "connect p99", Unit: "ms", Value: v.ConnectMS.P99},
	}
	if l := v.LatencyMS; l != nil {
		out = append(out, verdict.Metric{Name: "latency p50", Unit: "ms", Value: l.P50}, verdict.Metric{Name: "latency p99", Unit: "ms", Value: l.P99})
	}
	r := v.Resources
	return append(out,
		verdict.Metric{Name: "backend memory", Unit: "MiB", Value: float64(r.BackendRSSMax) / (1 << 20)},
		verdict.Metric{Name: "backend CPU", Unit: "%", Value: r.BackendCPUAverage},
		verdict.Metric{Name: "nginx memory", Unit: "MiB", Value: float64(r.NginxRSSMax) / (1 << 20)},
		verdict.Metric{Name: "runner memory", Unit: "MiB", Value: float64(r.RunnerRSSMax) / (1 << 20)},
		verdict.Metric{Name: "runners' CPU", Unit: "%", Value: r.RunnerCPUAverage},
	)
}
