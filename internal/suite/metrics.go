package suite

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Metrics are the numbers of a run that can be held against those of another one, always the same in the same order
// for the same plan. Their units are "ms", "MiB", "%" (of a core) or what the suite says.
func Metrics(v *verdict.Verdict) []verdict.Metric {
	failed := 0
	if v.Verdict == verdict.Fail {
		failed = 1
	}
	out := []verdict.Metric{fault("failed verdict", uint64(failed))}
	kind, err := Of(v.Plan)
	// A suite may hold no streams, or load them to their breaking point.
	if err == nil && kind.Plan.Known || slices.ContainsFunc(v.Checks, func(c verdict.Check) bool { return c.ID == verdict.CheckMissed }) {
		out = append(out, fault("connections refused", clamp.Uint64(v.Connections.Refused)), fault("connections dropped", clamp.Uint64(v.Connections.Dropped)))
		for _, n := range v.Messages.Each() {
			if n.Fault && v.Service.Counted() {
				out = append(out, fault(v.Service.Noun()+"s "+n.Name, n.Count))
			}
		}
		if p := v.Messages.Published; p != nil {
			out = append(out, fault("messages not confirmed", p.Planned-min(p.Confirmed, p.Planned)))
		}
	}
	out = append(out, v.Metrics...)
	if err == nil && kind.Metrics != nil {
		out = append(out, kind.Metrics(v)...)
	}
	return out
}

func fault(name string, n uint64) verdict.Metric {
	return verdict.Metric{Name: name, Value: float64(n), Fault: true}
}
