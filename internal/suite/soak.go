package suite

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// soak opens all streams and keeps them for the whole run. It is the run that one gets without naming a suite: its
// plan.json has no field for the suite, and its script declares none.
var soak = Suite{
	Name:     "soak",
	Short:    "hold every event stream for the whole time, and account for every noop of each",
	Script:   []string{"load-tests", "sse", "connectionTest.js"},
	Plan:     Plan{Known: true},
	Target:   Target{Streams: true},
	Sampling: Sampling{Every: resources.Every, Optional: true},
	Page: Page{Doc: "docs/accounting.md", Sections: []string{
		"checks", "actions", "plan", "account", "published", "timelines", "lateness", "machines", "leaks", "ends", "teardown", "arithmetic", "comparison", "headroom", "data",
	}},
	Assess: assessSoak, Metrics: soakMetrics,
}

func assessSoak(r *Run) verdict.Assessment {
	s := r.streams()
	return verdict.Assessment{
		Streams: s, Warnings: s.Warnings, Passed: s.Passed(),
		Checks: slices.Concat(s.Cut(), s.Faults(), s.HeldThroughout(), []verdict.Check{s.KeptUp()}, s.Agreement()),
		Doubts: []verdict.Check{s.Unnoticed()}, Tables: endTables(s.Ends),
	}
}

// soakMetrics leaves latency out where no time of sending was known, and lateness where there is no interval to be late by.
func soakMetrics(v *verdict.Verdict) (out []verdict.Metric) {
	ms := func(name string, value float64) {
		out = append(out, verdict.Metric{Name: name, Unit: "ms", Value: value})
	}
	if v.Service.ByInterval() {
		ms("lateness p99", v.LatenessMS.P99)
	}
	ms("connect p50", v.ConnectMS.P50)
	ms("connect p99", v.ConnectMS.P99)
	if l := v.LatencyMS; l != nil {
		ms("latency p50", l.P50)
		ms("latency p99", l.P99)
	}
	if e := v.Ends; e != nil && e.Count > 0 {
		ms("end answer p99", e.MS.P99)
	}
	if last := v.Messages.LastSubscriberMS; last != nil {
		ms("last subscriber p50", last.P50)
		ms("last subscriber p99", last.P99)
	}
	if p := v.Messages.Published; p != nil {
		ms("publish answer p99", p.AnswerMS.P99)
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
