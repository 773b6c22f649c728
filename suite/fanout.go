package suite

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/verdict"
)

var fanout = Suite{
	Name:   "fanout",
	Short:  "measure how long a broadcast takes to reach every event stream",
	Script: []string{"load-tests", "sse", "fanout.js"},
	Settings: []Setting{
		{"LEVELS", "connections, with commas between, rising"},
		{"BROADCASTS", "at each level"},
		{"EVERY_MS", "milliseconds between two of them"},
		noopIntervalSetting,
		{"LATE_MS", "milliseconds above which a noop counts as late"},
		{"DELIVERY_SECONDS", "how long a broadcast may take to be everywhere"},
	},
	Streams: true, Runners: 1, Doc: "docs/stream-suites.md",
	Assess: assessFanout,
}

func assessFanout(r *Run) verdict.Assessment {
	m, account := r.Rounds[0], r.streams()
	a := verdict.Assessment{
		Streams: account, Facts: streamFacts(account, m),
		Criteria: append([]verdict.Judged{everyStream(m), everywhere(m)}, account.Criteria()...),
	}
	t := verdict.Table{
		Title:   "Broadcasts",
		Note:    "ms from the server's timestamp in the event to the read by the client; the last one served is that of each broadcast",
		Columns: []string{"connections", "deliveries", "p50", "p95", "p99", "max", "last p50", "last max", "POST p50", "runner CPU %", "backend CPU %"},
	}
	latency, last, post := sumsByStage(m, "fanout_latency"), sumsByStage(m, "fanout_last"), sumsByStage(m, "fanout_post")
	var delivered int64
	for _, st := range stagesOf(m) {
		l, ok := latency[st.Name]
		if !ok {
			continue
		}
		delivered += l.Count
		x := r.machine(m, time.UnixMicro(l.FirstUS), time.UnixMicro(l.LastUS))
		t.Rows = append(t.Rows, []string{
			whole(int64(st.Concurrency)), whole(l.Count), trend(l, .5), trend(l, .95), trend(l, .99), trend(l, 1),
			trend(last[st.Name], .5), trend(last[st.Name], 1), trend(post[st.Name], .5), percentPoints(x.Runners), percentPoints(x.Backend),
		})
		a.Figures = append(a.Figures,
			verdict.Figure{Name: fmt.Sprintf("p99 to %s", whole(int64(st.Concurrency))), Unit: "ms", Value: quantile(l.Trend, .99)})
	}
	a.Tables = []verdict.Table{t}
	a.Facts = append([]verdict.Fact{{Name: "deliveries", Value: whole(delivered)}}, a.Facts...)
	a.Passed = fmt.Sprintf("every broadcast reached every connection: %s deliveries", whole(delivered))
	return a
}

// everywhere asks that each broadcast came once to each stream, and was the right one.
func everywhere(m *shard.Merged) verdict.Judged {
	total := func(name string) (sum float64, n int64) {
		for _, metric := range sumsByStage(m, name) {
			sum += metric.Sum
			n += metric.Count
		}
		return sum, n
	}
	due, _ := total("fanout_due")
	_, arrived := total("fanout_latency")
	wrong, _ := total("fanout_wrong")
	short, _ := total("fanout_short")
	c := verdict.Judged{Criterion: verdict.Criterion{
		Name: "broadcasts are everywhere", Limit: count(due), Actual: whole(arrived), Pass: due > 0 && float64(arrived) == due && wrong+short == 0,
		Invalid: due == 0, Why: "a message to all has to reach all",
	}}
	if wrong > 0 {
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s deliveries were not of the broadcast that was under way: late, doubled or damaged", count(wrong)))
	}
	if short > 0 {
		c.Reasons = append(c.Reasons, fmt.Sprintf("of %s broadcasts the server itself says that it did not put them on every stream", count(short)))
	}
	if float64(arrived) != due {
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s of %s deliveries arrived in time", whole(arrived), count(due)))
	}
	return c
}
