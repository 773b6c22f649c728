package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var fanout = Suite{
	Name:    "fanout",
	Short:   "measure how long a broadcast takes to reach every event stream",
	Script:  []string{"load-tests", "sse", "fanout.js"},
	Target:  Target{Streams: true},
	Runners: oneRunner,
	Page:    Page{Doc: "docs/suites.md"},
	Assess:  assessFanout,
}

func assessFanout(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	t := newTable("Broadcasts", "each subscriber counts once per broadcast; ms from the server's timestamp in the event to the read by the client; "+
		"last: the last subscriber of each broadcast; since the request: from the start of the POST to the read, both by the clock of the runner",
		"streams|deliveries|p50|p95|p99|max|last p50|last max|since the request p50|p99|max|POST p50|runner CPU %|backend CPU %")
	latency, last, post, request := sumsByStage(m, "fanout_latency"), sumsByStage(m, "fanout_last"), sumsByStage(m, "fanout_post"), sumsByStage(m, "fanout_since_request")
	arrived := sumsByStage(m, "fanout_arrived")
	var delivered int64
	var metrics []verdict.Metric
	for _, st := range stagesOf(m) {
		delay, ok := latency[st.Name]
		if !ok {
			continue
		}
		deliveries, last, request := int64(arrived[st.Name].Sum), last[st.Name], request[st.Name]
		delivered += deliveries
		use := r.machine(m, time.UnixMicro(delay.FirstUS), time.UnixMicro(delay.LastUS))
		t.Add(row(st.Concurrency, deliveries, trend(delay, .5), trend(delay, .95), trend(delay, .99), trend(delay, 1), trend(last, .5), trend(last, 1),
			trend(request, .5), trend(request, .99), trend(request, 1), trend(post[st.Name], .5), fmt.Sprintf("%.0f", use.Runners), fmt.Sprintf("%.0f", use.Backend))...)
		metrics = append(metrics, verdict.Metric{Name: sentence("p99 to %v", st.Concurrency), Unit: "ms", Value: quantile(delay.Trend, .99)})
		if request.Count > 0 {
			metrics = append(metrics, verdict.Metric{Name: sentence("p99 since the request, to %v", st.Concurrency), Unit: "ms", Value: quantile(request.Trend, .99)})
		}
	}
	return verdict.Assessment{
		Streams: streams, Tables: []verdict.Table{t}, Metrics: metrics,
		Facts:  append([]verdict.Fact{{Name: "deliveries", Value: text(delivered)}}, streamFacts(streams, m)...),
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, checkDeliveries(m), streams.FaultChecks(), streams.AgreementChecks()),
		Passed: []string{sentence("every broadcast reached every subscriber: %v deliveries", delivered)},
	}
}

// checkDeliveries returns the checks that each broadcast reached each subscriber exactly once, that no other broadcast
// arrived, and that each delivery has a plausible send time. If planned broadcasts were not sent, a further check
// states that.
func checkDeliveries(m *shard.Merged) []verdict.Check {
	total := func(name string) (sum float64) {
		for _, metric := range sumsByStage(m, name) {
			sum += metric.Sum
		}
		return sum
	}
	due, arrived, overdue, short := total("fanout_due"), total("fanout_arrived"), total("fanout_overdue"), total("fanout_short")
	delivered := check(CheckDelivered, "broadcasts delivered", count(due), arrived, due > 0 && arrived == due && short == 0)
	delivered.Severity = verdict.InconclusiveIf(due == 0)
	if short > 0 {
		reason := "the server did not confirm that it sent " + format.Plural(int64(short), "broadcast", "broadcasts") + " to every stream"
		if failed := failedBroadcasts(m); len(failed) > 0 {
			reason += " (" + reasonCounts(failed) + ")"
		}
		delivered.Reasons = append(delivered.Reasons, reason)
	}
	if arrived != due {
		delivered.Reasons = append(delivered.Reasons, sentence("%v of %v deliveries arrived in time, %v later", arrived, due, overdue))
	}
	zeroCheck := func(id verdict.CheckID, name, counter, reason string) verdict.Check {
		n := total(counter)
		c := check(id, name, "0", n, n == 0, format.Plural(int64(n), "delivery ", "deliveries ")+reason)
		if c.Pass && arrived == 0 {
			return c.NotJudged("no broadcast arrived")
		}
		return c
	}
	checks := []verdict.Check{
		delivered,
		zeroCheck(CheckDeliveredOnce, "broadcasts duplicated", "fanout_duplicated", "repeated a broadcast that the subscriber had already received"),
		zeroCheck(CheckIntact, "unknown broadcasts", "fanout_unexpected", "did not match any broadcast sent to the subscriber: damaged, or from another sender"),
		zeroCheck(CheckSendTime, "deliveries without a send time", "fanout_untimed",
			"lacked a send time, or had one before the request or after the delivery; the clocks of server and runners may differ").AsDoubt(),
	}
	if planned, unsent := unsentBroadcasts(m); unsent > 0 {
		checks = append(checks, check(CheckBroadcasts, "broadcasts sent", text(planned), text(planned-unsent), false,
			sentence("%v of %v broadcasts %s not sent before the end of their level", unsent, planned, format.Form(unsent, "was", "were"))).AsDoubt())
	}
	return checks
}

func failedBroadcasts(m *shard.Merged) map[string]int {
	failed := map[string]int{}
	for _, metric := range m.Metrics {
		if code := metric.Tags[shard.TagCode]; metric.Name == "fanout_short" && code != "" {
			failed[codeText(code)] += int(metric.Sum)
		}
	}
	return failed
}

func unsentBroadcasts(m *shard.Merged) (planned, unsent int) {
	due := sumsByStage(m, "fanout_due")
	for _, st := range stagesOf(m) {
		planned += st.Requests
		unsent += max(st.Requests-int(due[st.Name].Sum)/max(st.Concurrency, 1), 0)
	}
	return planned, unsent
}
