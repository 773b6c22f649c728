package suite

import (
	"github.com/sse-soak/sse-soak/internal/verdict"

	"github.com/sse-soak/sse-soak/internal/format"
)

// OfRequests is the unit of metrics that are a share of all requests.
const OfRequests = "% of requests"

// answerMetrics returns the metrics of a stage that are compared with other runs: the times of its good answers, and its share of
// failures. of names the stage. bound: the load generator was the limit, so the values are bounds.
func (st *StageResult) answerMetrics(of string, bound bool) []verdict.Metric {
	failed := verdict.Metric{Name: "failed " + of, Unit: OfRequests, Value: 100 * st.FailedShare(), Requests: st.Total(), Bound: bound}
	if st.OK.Count() == 0 {
		return []verdict.Metric{failed}
	}
	ownMean := format.InMilliseconds(st.Own.Mean())
	out := []verdict.Metric{{Name: "mean " + of, Unit: "ms", Value: st.Mean(), Own: &ownMean, Bound: bound}}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", .5}, {"p95", .95}, {"p99", .99}, {"max", 1}} {
		own := quantile(st.Own, q.at)
		out = append(out, verdict.Metric{Name: q.name + " " + of, Unit: "ms", Value: quantile(st.OK, q.at), Own: &own, Bound: bound})
	}
	return append(out, failed)
}
