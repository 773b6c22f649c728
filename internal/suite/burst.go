package suite

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const concurrentRequests = "requests at once"

var burst = Suite{
	Name:    "burst",
	Short:   "send many requests at once, and check that the service recovers",
	Script:  []string{"load-tests", "http", "burst.js"},
	Runners: Runners{Default: 1}, // each runner has its own barrier, so several runners would not send at the same time
	Target:  Target{SeparateCores: true},
	Page:    Page{Doc: httpDoc},
	Assess:  assessBurst,
}

func assessBurst(r *Run) verdict.Assessment {
	all := r.stages()
	bursts := filterKind(all, kindLoad)
	healthChecks := map[string]StageResult{} // by the name of the preceding stage
	for _, st := range filterKind(all, kindHealth) {
		healthChecks[st.Target] = st
	}
	limits := r.limits()
	levels := limits.levels(bursts)
	t := newTable("Bursts", limits.String()+", and a good response to the health check after the burst. Sent within: from the first request to the "+
		"last of all runners; in flight: maximum number of requests that the service had accepted and not answered (header X-In-Flight)",
		"at once|failed|sent within|in flight|responses/s|p95 ms|health|status")
	sentAfter, inFlight := sumsByStage(r.Rounds[0], "sent_after"), sumsByStage(r.Rounds[0], "server_in_flight")
	for i, st := range bursts {
		health := "–"
		if h, ok := healthChecks[st.Name]; ok {
			health = "good"
			if h.failedByGenerator() {
				health = "unknown"
			} else if h.OK.Count() == 0 { // a service that does not recover has failed, even if it responded before
				health = "bad"
				levels[i].FailedShare, levels[i].UndelayedFailedShare, levels[i].HardFailureShare = 1, 1, 1
			}
		}
		t.Add(row(float64(st.Concurrency), st.Failed.Count(), fmt.Sprintf("%.0f ms", sendDuration(sentAfter[st.Name])), inFlightText(st, inFlight[st.Name]),
			st.PerSecond(), p95Cell(st.Requests), health, limits.Judge(levels[i]).Status)...)
	}
	trials := limits.Trials(levels)
	breaking, sum := findBreakingPoint(trials), total(all)
	a := verdict.Assessment{
		Facts: append([]verdict.Fact{sum.fact()}, breaking.facts(concurrentRequests)...),
		Checks: []verdict.Check{
			checkResponses(sum, all), limits.checkRecovery(all), checkLowestLoad("the lowest load is sustained", trials), checkGeneratorAtLoads("at every load", " requests at once", trials),
		},
		Tables:  []verdict.Table{t},
		Metrics: []verdict.Metric{{Name: "requests at once sustained", Value: breaking.Sustained, HigherIsBetter: true}},
		Passed:  []string{breaking.Summary(concurrentRequests) + "; the service recovered after each burst"},
	}
	stages := append(bursts, filterKind(all, kindSequence)...)
	r.addRequests(&a, all, stages, sum, breaking.recommendations(concurrentRequests))
	for _, st := range stages {
		a.Metrics = append(a.Metrics, st.timeMetrics("of "+st.Title, st.isGeneratorLimited())...)
	}
	return a
}

// checkRecovery returns the check that each health check got a good response, and that the requests in sequence after
// the bursts were good. Requests in sequence that were not made before the end of their stage do not count.
func (l Limits) checkRecovery(all []StageResult) verdict.Check {
	var reasons []string
	good, unknown := 0, 0 // unknown: stages that failed because of the load generator
	stages := filterKind(all, kindHealth)
	for _, st := range stages {
		switch {
		case st.OK.Count() > 0:
			good++
		case st.failedByGenerator():
			unknown++
			reasons = append(reasons, fmt.Sprintf("after %s the health check failed because of the load generator, so it is unknown whether the service recovered", st.Target))
		default:
			reasons = append(reasons, fmt.Sprintf("after %s the health check failed", st.Target))
		}
	}
	l.AnsweredShare = 0
	actual := fmt.Sprintf("%d of %d", good, len(stages))
	for _, st := range filterKind(all, kindSequence) {
		trial := l.Judge(st.level(l))
		if trial.Status == Good {
			continue
		}
		actual += ", but not in sequence"
		reasons = append(reasons, fmt.Sprintf("after the bursts, the requests in sequence were not good: %s", trial.Reason))
		if trial.Status == ByGenerator {
			unknown++
		}
	}
	c := check(CheckHealth, "healthy after each burst", "always", actual, len(stages) > 0 && len(reasons) == 0, reasons...)
	return attributeIf(unknown > 0 && unknown == len(reasons), c)
}

func (st *StageResult) failedByGenerator() bool {
	return st.OK.Count() == 0 && st.Failed.Count() > 0 && st.Attributed == st.Failed.Count()
}

// sendDuration returns the milliseconds between the first and the last request of a burst. The values of the metric
// count from the start of the burst on their runner. Runners start at different times, so sendDuration prefers the times
// of the samples.
func sendDuration(sent shard.Metric) float64 {
	if sent.FirstUS == 0 {
		return sent.Max - sent.Min
	}
	return max(float64(sent.LastUS-sent.FirstUS)/1000-sent.Min, 0)
}

// inFlightText returns the maximum of the header X-In-Flight; "–" if no response had that header.
func inFlightText(st StageResult, inFlight shard.Metric) string {
	if inFlight.Count == 0 {
		return "–"
	}
	if int(inFlight.Max) > st.Concurrency {
		return count(inFlight.Max) + " (more than in the burst)"
	}
	return count(inFlight.Max)
}
