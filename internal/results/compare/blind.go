package compare

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Metrics of how long a message takes.
const (
	latencyP50  = "latency p50"
	latencyP99  = "latency p99"
	latenessP99 = "lateness p99"
)

// sinceSending are the metrics that count from the time of sending, if clocks allow it.
var sinceSending = []string{latencyP50, latencyP99, "last subscriber p50", "last subscriber p99"}

// blind lists changes between the runs that no compared metric would show: "nothing got worse" is limited to the
// compared metrics.
func (c *Comparison) blind() (out []string) {
	compared := func(name string) bool {
		return slices.ContainsFunc(c.Changes, func(f Change) bool { return f.Name == name })
	}
	const alike = "a delay that every message has alike, however long: "
	switch {
	case compared(latencyP50) && clockOf(c.New[0]) != verdict.AboveSend:
		out = append(out, alike+"service and runners have no clock in common, so latency counts from the fastest message")
	case !compared(latencyP50) && compared(latenessP99):
		out = append(out, alike+"no time of sending is compared, and lateness is how much longer a gap was than the interval")
	case !compared(latencyP50) && !c.New[0].Verdict.Service.ByInterval():
		out = append(out, "how long a message takes: no time of sending is compared")
	}
	unknown := func(m verdict.Metric) bool { return m.Name == "backend memory" && m.Value == 0 }
	if slices.ContainsFunc(append(slices.Clone(c.Old), c.New...), func(r Run) bool { return slices.ContainsFunc(suite.Metrics(r.Verdict), unknown) }) {
		out = append(out, "what the service takes of memory and CPU: not every run has it")
	}
	return out
}

// clockOf is what the latency of a run counts from, "" where it has none.
func clockOf(r Run) string {
	if r.Verdict.LatencyMS == nil {
		return ""
	}
	return r.Verdict.LatencyMS.Above
}

// oneClock reports whether the latencies of all runs count from the same moment.
func oneClock(runs []Run) bool {
	return !slices.ContainsFunc(runs, func(r Run) bool { return clockOf(r) != clockOf(runs[0]) })
}
