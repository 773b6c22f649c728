package baseline

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Figure is one number of a run that can be held against the same number of another.
type Figure struct {
	Name  string
	Unit  string // "ms", "MiB", "%", "": a count
	Value float64
	// HigherIsBetter, as of a throughput; of a latency lower is.
	HigherIsBetter bool
	// Least is the change, in Unit, below which nobody would care.
	Least float64
	// Fault says that the figure counts what must not be: the first one is a regression.
	Fault bool
}

// Figures are the figures of a run, always the same ones in the same order for the same plan.
func Figures(v *verdict.Verdict) []Figure {
	if v.Suite != nil {
		return suiteFigures(v)
	}
	out := append([]Figure{fault("failed verdict", flag(v.Verdict == verdict.Fail))}, streamFaults(v)...)
	out = append(out,
		duration(latenessP99, v.LatenessMS.P99),
		duration("connect p50", v.ConnectMS.P50),
		duration("connect p99", v.ConnectMS.P99),
	)
	if v.LatencyMS != nil {
		out = append(out, duration(latencyP50, v.LatencyMS.P50), duration(latencyP99, v.LatencyMS.P99))
	}
	r := v.Resources
	return append(out,
		memory("backend memory", r.BackendRSSMax), cpu("backend CPU", r.BackendCPUAverage),
		memory("nginx memory", r.NginxRSSMax),
		memory("runner memory", r.RunnerRSSMax), cpu("runners' CPU", r.RunnerCPUAverage),
	)
}

// suiteFigures are those that the suite names itself.
func suiteFigures(v *verdict.Verdict) []Figure {
	out := []Figure{fault("failed verdict", flag(v.Verdict == verdict.Fail))}
	if slices.ContainsFunc(v.Criteria, func(c verdict.Criterion) bool { return c.Name == "noops missed" }) {
		out = append(out, streamFaults(v)...) // the suite holds streams, and loads them to no breaking point
	}
	for _, f := range v.Figures {
		least := 0.0
		if f.Unit == "ms" {
			least = leastMS
		}
		out = append(out, Figure{Name: f.Name, Unit: f.Unit, Value: f.Value, HigherIsBetter: f.HigherIsBetter, Least: least})
	}
	return out
}

func streamFaults(v *verdict.Verdict) []Figure {
	out := []Figure{
		fault("connections refused", uint64(v.Connections.Refused)),
		fault("connections dropped", uint64(v.Connections.Dropped)),
	}
	for _, n := range v.Noops.Each() {
		if n.Fault {
			out = append(out, fault("noops "+n.Name, n.Count))
		}
	}
	return out
}

func flag(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func fault(name string, n uint64) Figure { return Figure{Name: name, Value: float64(n), Fault: true} }

// leastMS is a change of a time that nobody would care for.
const leastMS = 5

func duration(name string, ms float64) Figure {
	return Figure{Name: name, Unit: "ms", Value: ms, Least: leastMS}
}

func memory(name string, bytes uint64) Figure {
	return Figure{Name: name, Unit: "MiB", Value: float64(bytes) / (1 << 20), Least: 1}
}

// cpu is a share of one core.
func cpu(name string, percent float64) Figure {
	return Figure{Name: name, Unit: "%", Value: percent, Least: 1}
}
