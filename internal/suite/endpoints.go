package suite

import (
	"maps"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// endpointTables split the requests of stages that run one after the other by what was asked, for each target apart; none where
// only one thing was asked.
func endpointTables(stages []StageResult) (out []verdict.Table) {
	var targets []string
	for _, st := range stages {
		if !slices.Contains(targets, st.Target) {
			targets = append(targets, st.Target)
		}
	}
	for _, target := range targets {
		suffix := ""
		if len(targets) > 1 {
			suffix = ", " + target
		}
		out = append(out, endpointsOf(target, suffix, stages)...)
	}
	return out
}

func endpointsOf(target, suffix string, stages []StageResult) []verdict.Table {
	var seconds float64
	by := map[string]*Requests{}
	for _, st := range stages {
		if st.Target != target {
			continue
		}
		seconds += st.Span()
		for _, metric := range st.metrics {
			endpoint := metric.Tags[shard.TagEndpoint]
			if by[endpoint] == nil {
				by[endpoint] = NewRequests()
			}
			by[endpoint].Add(metric)
		}
		for _, metric := range st.late {
			by[metric.Tags[shard.TagEndpoint]].AddLate(metric)
		}
	}
	if len(by) < 2 {
		return nil
	}
	counts := verdict.Table{
		Title: "By endpoint" + suffix, Note: "answered/s: over the total time of all stages, without answers after the end of their stage",
		Columns: []string{"endpoint", "requests", "failed", "wrong", "answered/s"},
	}
	times := latencyTable("Latency by endpoint"+suffix+", ms", "endpoint")
	for _, endpoint := range slices.Sorted(maps.Keys(by)) {
		q := by[endpoint]
		rate := "–"
		if seconds > 0 {
			rate = count(float64(q.OK.Count()-q.Late.Count()) / seconds)
		}
		counts.Add(endpoint, format.Thousands(q.Total()), format.Thousands(q.Failed.Count()), format.Thousands(q.wrongAnswers()), rate)
		times.Add(latencyRow(endpoint, q)...)
	}
	return []verdict.Table{counts, times}
}
