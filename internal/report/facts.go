package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A list is facts that a report shows under each other; one without a name goes on with the one before.
type list []verdict.Fact

func (l *list) add(name, value string, args ...any) {
	*l = append(*l, verdict.Fact{Name: name, Value: fmt.Sprintf(value, args...)})
}

// facts say what ran and what came of it, in the order in which people ask.
func facts(v *verdict.Verdict) list {
	var out list
	if v.Layout.Declared {
		out.add("suite", "%s, profile %s, %s, %s", v.Suite.Name, v.Suite.Profile, format.Count(len(v.Suite.Stages), "stage"), format.Count(v.Plan.Runners, "runner"))
		out.add("target", "%s%s", v.Suite.BackendURL, v.Redirected())
		out = append(out, v.Facts...)
	} else {
		out.streams(v)
		out.processes(v)
		out.outages(v)
	}
	if packed := v.Compressed(); packed != "" {
		out.add("compressed", "%s", packed)
	}
	if shared := v.HTTP2(); shared != "" {
		out.add("HTTP/2", "%s", shared)
	}
	if v.Control != nil {
		out.add("control", "%s", v.Control.Line())
	}
	out.system(&v.Resources)
	if v.StartedUnix > 0 {
		out.add("from", "%s to %s", format.Moment(v.StartedUnix), format.Moment(v.EndedUnix))
	}
	return out
}

// streams are what the plan wanted of connections and noops, and what became of them.
func (l *list) streams(v *verdict.Verdict) {
	p, c := v.Plan, v.Connections
	l.add("plan", "%s, %s, %s, %s", format.Count(p.Connections, "connection"), format.Duration(time.Duration(p.Seconds)*time.Second), verdict.Rhythm(&p, &v.Service), format.Count(p.Runners, "runner"))
	l.add("target", "%s", target(v))
	l.add("connections", "%s opened, %s held to the end, %d refused, %d dropped", format.Thousands(c.Opened), format.Thousands(c.Completed), c.Refused, c.Dropped)
	if h := v.Held; h != nil {
		l.add("open", "%s of the planned time, %s of %s stream-seconds", h.Percent(), format.Thousands(uint64(h.Held)), format.Thousands(uint64(h.Planned)))
	} else {
		l.add("open", "not known")
	}
	l.messages(v)
	l.add("connect", "%s", quantiles(v.ConnectMS))
	var refused []string
	for _, reason := range slices.Sorted(maps.Keys(v.RefusedAttempts)) {
		refused = append(refused, format.Count(v.RefusedAttempts[reason], "attempt")+" by "+reason)
	}
	if len(refused) > 0 {
		l.add("refused", "%s", strings.Join(refused, ", "))
	}
}

// Planned returns the number of messages in the plan, if the run did not pass and expected fewer because streams were open for
// less time than planned; otherwise 0.
func Planned(v *verdict.Verdict) uint64 {
	if n := v.Messages; v.Verdict == verdict.Pass || !v.Service.ByInterval() || n.Expected >= n.Floor {
		return 0
	}
	return v.Messages.Floor
}

// received formats the numbers of messages received, expected and, if higher, planned.
func received(v *verdict.Verdict, t ledger.Totals) string {
	text := fmt.Sprintf("%s of %s received", format.Thousands(t.Received), format.Thousands(t.Expected))
	if planned := Planned(v); planned > 0 {
		text += fmt.Sprintf(" (%s planned)", format.Thousands(planned))
	}
	return text
}

// processes are what the server says of itself, and what target and runners took.
func (l *list) processes(v *verdict.Verdict) {
	if v.Server.Known {
		l.add("server", "%s", v.Server.Says(v.Messages.Received))
	} else {
		l.add("judged by", "%s", v.Evidence.Rests())
	}
	r := v.Resources
	if r.BackendRSSMax > 0 {
		l.add("backend", "%.1f %% of a core, %s at most", r.BackendCPUAverage, format.Bytes(r.BackendRSSMax))
	}
	if r.NginxRSSMax > 0 {
		l.add("nginx", "%s at most", format.Bytes(r.NginxRSSMax))
	}
	l.add("runners", "%.1f %% of a core together, %s at most each", r.RunnerCPUAverage, format.Bytes(r.RunnerRSSMax))
}

// system is what the machine of `soak run` and the processes show beside CPU and memory, as far as it is known.
func (l *list) system(r *verdict.Resources) {
	var threads []string
	for _, of := range []struct {
		name string
		most int
	}{{"backend", r.BackendThreads}, {"nginx", r.NginxThreads}, {"runners together", r.RunnerThreads}} {
		if of.most > 0 {
			threads = append(threads, fmt.Sprintf("%s %d", of.name, of.most))
		}
	}
	if len(threads) > 0 {
		l.add("threads", "%s at most", strings.Join(threads, ", "))
	}
	if r.Received+r.Transmitted > 0 {
		l.add("network", "%s received, %s sent, loopback included", format.Bytes(r.Received), format.Bytes(r.Transmitted))
	}
	if r.Lookups > 0 {
		l.add("DNS", "%s of the target's name: p50 %s  max %s", format.Count(r.Lookups, "lookup"), format.Milliseconds(r.LookupP50), format.Milliseconds(r.LookupMax))
	}
}

// outages are how long clients had no stream.
func (l *list) outages(v *verdict.Verdict) {
	if v.Reconnect != nil {
		l.add("reconnects", "%d; out for %s", v.Connections.Reconnected, quantiles(v.Reconnect.Quantiles))
	}
	if o := v.LongestOutage; o != nil && v.Plan.Reconnect {
		l.add("longest out", "%s, %s from %s on", format.Milliseconds(1000*o.Seconds), o.ID, format.Moment(o.Unix))
	}
}

func quantiles(q verdict.Quantiles) string {
	return fmt.Sprintf("p50 %s  p95 %s  p99 %s  max %s", format.Milliseconds(q.P50), format.Milliseconds(q.P95), format.Milliseconds(q.P99), format.Milliseconds(q.Max))
}
