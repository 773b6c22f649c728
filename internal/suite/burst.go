package suite

import (
	"cmp"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const atOnce = "requests at once"

var burst = Suite{
	Name:   "burst",
	Short:  "send many requests at once, and see whether the service is well afterwards",
	Script: []string{"load-tests", "http", "burst.js"},
	Settings: append([]Setting{
		{"BURSTS", "sizes of the bursts, with commas between"},
		{"BURST_SECONDS", "seconds that a burst may take at most"},
		{"SEQUENCE", "requests one after the other, at the end"},
		{"SEQUENCE_SECONDS", "seconds that the sequence may take at most"},
	}, limitSettings...),
	Runners: Runners{Default: 1}, // each runner has a barrier of its own
	Target:  Target{OwnCores: true},
	Page:    Page{Doc: httpDoc},
	Assess:  assessBurst,
}

// fixedLevels are stages with a fixed number of requests, as levels of concurrency. Where time is fixed, all that were made were
// offered.
func (l Limits) fixedLevels(stages []StageResult) []Level {
	out := make([]Level, 0, len(stages))
	for _, st := range stages {
		out = append(out, st.level(float64(st.Concurrency), float64(cmp.Or(int64(st.Stage.Requests), st.Total()+st.Dropped)), l))
	}
	return out
}

func assessBurst(r *Run) verdict.Assessment {
	all := r.stages()
	bursts, health := of(all, kindLoad), map[string]StageResult{} // by the stage that they follow
	for _, st := range of(all, kindHealth) {
		health[st.Target] = st
	}
	limits := r.limits()
	levels := limits.fixedLevels(bursts)
	for i, st := range bursts {
		if h, ok := health[st.Name]; ok && h.OK.Count() == 0 { // what does not get up again is broken, whatever it answered before
			levels[i].FailedShare, levels[i].OwnFailed, levels[i].Firm = 1, 1, 1
		}
	}
	tried := limits.Try(levels)
	breaking, sum := FindBreaking(tried), total(all)
	a := verdict.Assessment{
		Facts:   append([]verdict.Fact{sum.fact()}, breaking.facts(atOnce, "up to limit")...),
		Checks:  []verdict.Check{rightAnswers(sum, all), healthCheck(all), firstGood("the lowest load is sustained", tried), keptUp("at every load", "", tried)},
		Tables:  []verdict.Table{burstTable(r, limits, bursts, levels, health)},
		Metrics: []verdict.Metric{{Name: "requests at once sustained", Value: breaking.Sustained, HigherIsBetter: true}},
		Passed:  []string{breaking.Summary(atOnce) + "; the service was well after each"},
	}
	shown := append(bursts, of(all, kindSequence)...)
	r.addRequests(&a, all, shown, sum, breaking.recommendations(atOnce))
	for _, st := range shown {
		a.Metrics = append(a.Metrics, st.timeMetrics("of "+st.Title, st.limited())...)
	}
	return a
}

// healthCheck fails where a service does not answer when a burst is over.
func healthCheck(all []StageResult) verdict.Check {
	c := verdict.Check{
		ID: CheckHealth, Name: "well after each burst", Limit: "always", Why: "a burst may be refused in part, but the service has to survive it",
	}
	checks, unwell := of(all, kindHealth), 0
	for _, st := range checks {
		if st.OK.Count() == 0 {
			unwell++
			c.Reasons = append(c.Reasons, fmt.Sprintf("after %s the health check was not answered well", st.Target))
		}
	}
	c.Pass = len(checks) > 0 && unwell == 0
	c.Actual = fmt.Sprintf("%d of %d", len(checks)-unwell, len(checks))
	return c
}

func burstTable(r *Run, l Limits, stages []StageResult, levels []Level, health map[string]StageResult) verdict.Table {
	t := verdict.Table{
		Title: "Bursts",
		Note: l.goodMeans() + ", and a good answer to the health check after it. Sent within: from the first request that went out to the last, of all runners; " +
			"in hand: the most requests that were taken and not answered when one was, by the header X-In-Flight",
		Columns: []string{"at once", "failed", "sent within", "in hand", "answered/s", "p95 ms", "health", "status"},
	}
	sentAfter, inFlight := sumsByStage(r.Rounds[0], "sent_after"), sumsByStage(r.Rounds[0], "server_in_flight")
	for i, st := range stages {
		status, _ := l.Judge(levels[i])
		sent, inHand := sentAfter[st.Name], inFlight[st.Name]
		well := "–"
		if h, ok := health[st.Name]; ok {
			well = map[bool]string{true: "good", false: "bad"}[h.OK.Count() > 0]
		}
		t.Add(count(float64(st.Concurrency)), format.Thousands(st.Failed.Count()), fmt.Sprintf("%.0f ms", within(sent)), inHandOf(st, inHand),
			count(st.PerSecond()), p95Cell(st.Requests), well, string(status))
	}
	return t
}

// within is how many milliseconds the requests of a burst went out in. Each runner counts from its own start, which may be
// later than that of another by as long as its connections took to open, so the times of the samples decide.
func within(sent shard.Metric) float64 {
	if sent.FirstUS == 0 {
		return sent.Max - sent.Min
	}
	return max(float64(sent.LastUS-sent.FirstUS)/1000-sent.Min, 0)
}

// inHandOf says how many requests the service had in hand, by its own word.
func inHandOf(st StageResult, inHand shard.Metric) string {
	text := count(inHand.Max)
	if int(inHand.Max) > st.Concurrency {
		text += " (more than these)"
	}
	return text
}
