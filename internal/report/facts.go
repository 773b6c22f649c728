package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// facts say what ran and what came of it, in the order in which people ask.
func facts(v *verdict.Verdict) [][2]string {
	if v.Layout.Declared {
		return declaredFacts(v)
	}
	p, c, n := v.Plan, v.Connections, v.Noops
	var faults []string
	for _, total := range n.Each() {
		if total.Fault {
			faults = append(faults, fmt.Sprintf("%d %s", total.Count, total.Name))
		}
	}
	faults = append(faults, fmt.Sprintf("%d over %d ms late", n.Late, p.LateMS))
	rows := [][2]string{
		{"plan", fmt.Sprintf("%s, %s, a noop every %v s, %s",
			format.Count(p.Connections, "connection"), seconds(p.Seconds), p.NoopInterval, format.Count(p.Runners, "runner"))},
		{"target", p.BackendURL},
		{"connections", fmt.Sprintf("%s opened, %s held to the end, %d refused, %d dropped", format.Thousands(c.Opened), format.Thousands(c.Completed), c.Refused, c.Dropped)},
		{"open", openTime(v.Held)},
		{"noops", fmt.Sprintf("%s of %s received, %s,", format.Thousands(n.Received), format.Thousands(n.Expected), strings.Join(faults[:2], ", "))},
		{"", strings.Join(faults[2:], ", ")},
		{"lateness", quantiles(v.LatenessMS)},
	}
	if v.LatencyMS != nil {
		above := "since the server's timestamp"
		if v.LatencyMS.Above != verdict.AboveSend {
			above = "above the fastest noop"
		}
		rows = append(rows, [2]string{"latency", quantiles(v.LatencyMS.Quantiles)}, [2]string{"", above})
	}
	rows = append(rows, [2]string{"connect", quantiles(v.ConnectMS)})
	if len(v.RefusedAttempts) > 0 {
		rows = append(rows, [2]string{"refused", attempts(v.RefusedAttempts)})
	}
	if v.Server.Known {
		agrees := "which is what arrived"
		if !v.Server.Agrees {
			agrees = "which is NOT what arrived"
		}
		if v.Server.Confirms {
			agrees += ", but only where faults were found"
		}
		rows = append(rows, [2]string{"server", fmt.Sprintf("says it sent %s, %s", format.Thousands(v.Server.Sent), agrees)})
	} else {
		rows = append(rows, [2]string{"server", "keeps no ledger that we could read; judged by the " + v.Evidence.Client()})
	}
	r := v.Resources
	if r.BackendRSSMax > 0 {
		rows = append(rows, [2]string{"backend", fmt.Sprintf("%.1f %% of a core, %s at most", r.BackendCPUAverage, format.Bytes(r.BackendRSSMax))})
	}
	if r.NginxRSSMax > 0 {
		rows = append(rows, [2]string{"nginx", format.Bytes(r.NginxRSSMax) + " at most"})
	}
	rows = append(rows, [2]string{"runners", fmt.Sprintf("%.1f %% of a core together, %s at most each", r.RunnerCPUAverage, format.Bytes(r.RunnerRSSMax))})
	if v.Reconnect != nil {
		rows = append(rows, [2]string{"reconnects", fmt.Sprintf("%d; out for %s", c.Reconnected, quantiles(v.Reconnect.Quantiles))})
	}
	if o := v.LongestOutage; o != nil && p.Reconnect {
		rows = append(rows, [2]string{"longest out", fmt.Sprintf("%s, %s from %s on", ms(1000*o.Seconds), o.ID, format.Moment(o.Unix))})
	}
	if v.StartedUnix > 0 {
		rows = append(rows, [2]string{"from", format.Moment(v.StartedUnix) + " to " + format.Moment(v.EndedUnix)})
	}
	return rows
}

// openTime is how long streams were open against the plan.
func openTime(h *verdict.Held) string {
	if h == nil {
		return "not known"
	}
	return fmt.Sprintf("%s of the planned time, %s of %s stream-seconds", h.Percent(), format.Thousands(uint64(h.Held)), format.Thousands(uint64(h.Planned)))
}

// attempts lists refused attempts by reason.
func attempts(n map[string]int) string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(n)) {
		all = append(all, fmt.Sprintf("%s by %s", format.Count(n[reason], "attempt"), reason))
	}
	return strings.Join(all, ", ")
}

// declaredFacts are the facts of a run whose script declared what it does: what ran, what it found, and when.
func declaredFacts(v *verdict.Verdict) [][2]string {
	rows := [][2]string{
		{"suite", fmt.Sprintf("%s, profile %s, %s, %s", v.Suite.Name, v.Suite.Profile, format.Count(len(v.Suite.Stages), "stage"), format.Count(v.Plan.Runners, "runner"))},
		{"target", v.Suite.BackendURL},
	}
	for _, f := range v.Facts {
		rows = append(rows, [2]string{f.Name, f.Value})
	}
	if v.StartedUnix > 0 {
		rows = append(rows, [2]string{"from", format.Moment(v.StartedUnix) + " to " + format.Moment(v.EndedUnix)})
	}
	return rows
}

func quantiles(q verdict.Quantiles) string {
	return fmt.Sprintf("p50 %s  p95 %s  p99 %s  max %s", ms(q.P50), ms(q.P95), ms(q.P99), ms(q.Max))
}

func ms(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.1f s", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f ms", v)
}

func seconds(s int) string { return (time.Duration(s) * time.Second).String() }
