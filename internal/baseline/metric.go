package baseline

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Metric is one number of a run that can be held against the same number of another. Its unit is
// "ms", "MiB", "%" (of a core) or what its suite says.
type Metric struct {
	verdict.Figure
	// Fault says that the metric counts what must not be: the first one is a regression.
	Fault bool
}

// least is the change below which nobody would care, by unit.
var least = map[string]float64{"ms": 5, "MiB": 1, "%": 1}

// Metrics are the metrics of a run, always the same ones in the same order for the same plan.
func Metrics(v *verdict.Verdict) []Metric {
	var out []Metric
	add := func(name, unit string, value float64) {
		out = append(out, Metric{Figure: verdict.Figure{Name: name, Unit: unit, Value: value}, Fault: unit == ""})
	}
	failed := 0.0
	if v.Verdict == verdict.Fail {
		failed = 1
	}
	add("failed verdict", "", failed)
	// A suite may hold no streams, or load them to their breaking point.
	if slices.ContainsFunc(v.Criteria, func(c verdict.Criterion) bool { return c.Name == "noops missed" }) || v.Suite == nil {
		add("connections refused", "", float64(v.Connections.Refused))
		add("connections dropped", "", float64(v.Connections.Dropped))
		add("noops missed", "", float64(v.Noops.Missed))
		add("noops duplicated", "", float64(v.Noops.Duplicated))
		add("noops reordered", "", float64(v.Noops.Reordered))
		add("noops corrupted", "", float64(v.Noops.Corrupted))
	}
	if v.Suite != nil {
		for _, f := range v.Figures {
			out = append(out, Metric{Figure: f})
		}
		return out
	}
	add(latenessP99, "ms", v.LatenessMS.P99)
	add("connect p50", "ms", v.ConnectMS.P50)
	add("connect p99", "ms", v.ConnectMS.P99)
	if v.LatencyMS != nil {
		add(latencyP50, "ms", v.LatencyMS.P50)
		add(latencyP99, "ms", v.LatencyMS.P99)
	}
	mib := func(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
	add("backend memory", "MiB", mib(v.Resources.BackendRSSMax))
	add("backend CPU", "%", v.Resources.BackendCPUAverage)
	add("nginx memory", "MiB", mib(v.Resources.NginxRSSMax))
	add("runner memory", "MiB", mib(v.Resources.RunnerRSSMax))
	add("runners' CPU", "%", v.Resources.RunnerCPUAverage)
	return out
}
