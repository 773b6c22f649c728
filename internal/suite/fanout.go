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
	Name:   "fanout",
	Short:  "measure how long a broadcast takes to reach every event stream",
	Script: []string{"load-tests", "sse", "fanout.js"},
	Settings: slices.Concat([]Setting{
		{"LEVELS", "numbers of connections, rising, with commas between"},
		{"BROADCASTS", "broadcasts sent at each level"},
		{"EVERY_MS", "milliseconds between two broadcasts"},
	}, streamSettings, []Setting{
		{"DELIVERY_SECONDS", "seconds within which a broadcast has to reach every connection"},
	}),
	Target:  Target{Streams: true},
	Runners: oneRunner,
	Page:    Page{Doc: "docs/suites.md"},
	Assess:  assessFanout,
}

func assessFanout(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	a := verdict.Assessment{
		Streams: streams, Facts: streamFacts(streams, m),
		Checks: append(append([]verdict.Check{everyStream(m)}, deliveries(m)...), slices.Concat(streams.Faults(), streams.Agreement())...),
	}
	t := verdict.Table{
		Title: "Broadcasts",
		Note: "each subscriber counts once for a broadcast; ms from the server's timestamp in the event to the read by the client; the last one served is that of each broadcast; " +
			"since the request: from the start of the POST to the read, by the runner's clock alone",
		Columns: []string{"connections", "deliveries", "p50", "p95", "p99", "max", "last p50", "last max", "since the request p50", "p99", "max", "POST p50", "runner CPU %", "backend CPU %"},
	}
	latency, last, post, request := sumsByStage(m, "fanout_latency"), sumsByStage(m, "fanout_last"), sumsByStage(m, "fanout_post"), sumsByStage(m, "fanout_since_request")
	arrived := sumsByStage(m, "fanout_arrived")
	var delivered int64
	for _, st := range stagesOf(m) {
		l, ok := latency[st.Name]
		if !ok {
			continue
		}
		to := int64(arrived[st.Name].Sum)
		delivered += to
		x := r.machine(m, time.UnixMicro(l.FirstUS), time.UnixMicro(l.LastUS))
		t.Rows = append(t.Rows, []string{
			format.Thousands(st.Concurrency), format.Thousands(to), trend(l, .5), trend(l, .95), trend(l, .99), trend(l, 1),
			trend(last[st.Name], .5), trend(last[st.Name], 1), trend(request[st.Name], .5), trend(request[st.Name], .99), trend(request[st.Name], 1), trend(post[st.Name], .5), fmt.Sprintf("%.0f", x.Runners), fmt.Sprintf("%.0f", x.Backend),
		})
		a.Metrics = append(a.Metrics,
			verdict.Metric{Name: fmt.Sprintf("p99 to %s", format.Thousands(st.Concurrency)), Unit: "ms", Value: quantile(l.Trend, .99)})
		if q := request[st.Name]; q.Count > 0 {
			a.Metrics = append(a.Metrics,
				verdict.Metric{Name: fmt.Sprintf("p99 since the request, to %s", format.Thousands(st.Concurrency)), Unit: "ms", Value: quantile(q.Trend, .99)})
		}
	}
	a.Tables = []verdict.Table{t}
	a.Facts = append([]verdict.Fact{{Name: "deliveries", Value: format.Thousands(delivered)}}, a.Facts...)
	a.Passed = []string{fmt.Sprintf("every broadcast reached every connection: %s deliveries", format.Thousands(delivered))}
	return a
}

// deliveries ask that each broadcast came to each subscriber, once, and nothing else did: one who got
// it twice does not stand for one who never did.
func deliveries(m *shard.Merged) []verdict.Check {
	total := func(name string) (sum float64) {
		for _, metric := range sumsByStage(m, name) {
			sum += metric.Sum
		}
		return sum
	}
	due, arrived, overdue, short := total("fanout_due"), total("fanout_arrived"), total("fanout_overdue"), total("fanout_short")
	all := verdict.Check{
		ID: CheckDelivered, Name: "broadcasts are everywhere", Limit: count(due), Actual: count(arrived), Pass: due > 0 && arrived == due && short == 0,
		Severity: verdict.InconclusiveIf(due == 0), Why: "a message to all has to reach all",
	}
	if short > 0 {
		all.Reasons = append(all.Reasons, fmt.Sprintf("of %s broadcasts the server itself says that it did not put them on every stream", count(short)))
	}
	if arrived != due {
		all.Reasons = append(all.Reasons, fmt.Sprintf("%s of %s deliveries arrived in time, %s came later", count(arrived), count(due), count(overdue)))
	}
	none := func(id verdict.CheckID, name, what, why, counter string) verdict.Check {
		n := total(counter)
		c := verdict.Check{ID: id, Name: name, Limit: "0", Actual: count(n), Pass: n == 0, Why: why}
		if n > 0 {
			c.Reasons = []string{count(n) + " " + what}
		} else if arrived == 0 {
			return c.NotJudged("no broadcast arrived")
		}
		return c
	}
	timed := none(CheckTimed, "deliveries without a send time", "deliveries say no time at which they were sent, or one in the future: the clocks of server and runners differ", "how long they took is not known", "fanout_untimed")
	timed.Severity = verdict.SeverityInconclusive
	return []verdict.Check{
		all,
		none(CheckDeliveredOnce, "broadcasts doubled", "deliveries were of a broadcast that the subscriber already had", "a message that came twice", "fanout_twice"),
		none(CheckIntact, "strange broadcasts", "deliveries were of no broadcast that was sent to the subscriber: damaged, or of somebody else", "a message whose content was changed", "fanout_strange"),
		timed,
	}
}
