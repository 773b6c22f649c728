package suite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var throughput = Suite{
	Name:   "throughput",
	Short:  "answer as many requests as it can, with more and more of them at a time",
	Script: []string{"load-tests", "http", "throughput.js"},
	Settings: append([]Setting{
		{"VOLUMES", "numbers of requests, with commas between"},
		{"VOLUME_CONCURRENCY", "requests at a time while the volumes grow"},
		{"LEVELS", "requests at a time, with commas between"},
		{"LEVEL_SECONDS", "length of each level; under 2 nobody knows what was the limit"},
		{"WARMUP_SECONDS", "length of the warm-up, which is not counted"},
		{"SLOWEST", "requests/s that any service reaches: a number of requests has the time that it takes at this rate"},
	}, limitSettings...),
	Target: Target{OwnCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessThroughput,
}

// peak is the stage with the most answers per second.
func peak(stages []StageResult) (best StageResult, ok bool) {
	if len(stages) == 0 {
		return best, false
	}
	return slices.MaxFunc(stages, func(a, b StageResult) int { return cmp.Compare(a.PerSecond(), b.PerSecond()) }), true
}

// enoughConcurrency is the least concurrency that reaches nine tenths of the peak: more of it only
// makes requests wait.
func enoughConcurrency(stages []StageResult) int {
	best, ok := peak(stages)
	if !ok {
		return 0
	}
	least := best.Concurrency
	for _, st := range stages {
		if st.PerSecond() >= .9*best.PerSecond() {
			least = min(least, st.Concurrency)
		}
	}
	return least
}

// bound says what a peak is worth: where the load generator was saturated, the service could do more.
func bound(st StageResult) string {
	switch limit, why := st.Machine.Limit(); limit {
	case LimitIsOurs:
		return "; a lower bound, the load generator was saturated: " + why
	case LimitUnknown:
		return "; perhaps a lower bound, " + why
	case LimitService:
		return "; the service was the limit: " + why
	}
	return ""
}

func assessThroughput(r *Run) verdict.Assessment {
	all := r.stages()
	levels, volumes := of(all, kindLoad), of(all, kindVolume)
	counted := append(slices.Clone(volumes), levels...)
	limits, sum := r.limits(), total(counted)
	a := verdict.Assessment{
		Facts:  []verdict.Fact{sum.fact()},
		Checks: []verdict.Check{rightAnswers(sum, all), firstGood("the lowest load is sustained", limits.Try(limits.fixedLevels(levels))), notTheGenerator(counted)},
		Tables: []verdict.Table{fixedTable("By requests at a time", limits, levels), fixedTable("By number of requests", limits, volumes)},
	}
	if best, ok := peak(levels); ok {
		a.Facts = append(a.Facts, verdict.Fact{Name: "peak", Value: fmt.Sprintf("%s answers/s with %s%s", count(best.PerSecond()), best.Title, bound(best))})
		if best.OK.Count() > 0 {
			a.Facts = append(a.Facts, verdict.Fact{Name: "enough", Value: fmt.Sprintf("%d at a time reach nine tenths of it; with more, requests only wait", enoughConcurrency(levels))})
		}
		a.Metrics = append(a.Metrics, best.rateMetric("peak answers/s"))
		a.Passed = []string{fmt.Sprintf("%s right answers, %s a second at the peak", format.Thousands(sum.OK.Count()), count(best.PerSecond()))}
	}
	for _, st := range levels {
		a.Metrics = append(a.Metrics, st.rateMetric("answers/s with "+st.Title))
		a.Metrics = append(a.Metrics, st.timeMetrics("with "+st.Title, st.limited())...)
	}
	if cost, ok := r.cpuMetric(total(all).Total()); ok {
		a.Metrics = append(a.Metrics, cost)
	}
	r.addRequests(&a, all, counted, sum)
	return a
}

// notTheGenerator is advisory: a throughput is the service's only where the generator was not the limit.
func notTheGenerator(stages []StageResult) verdict.Check {
	c := verdict.Check{
		ID: verdict.CheckGenerator, Name: "the generator was not the limit", Limit: "at no load", Actual: "at none", Pass: true, Severity: verdict.SeverityWarning,
		Why: "a throughput that the generator limits is a lower bound of the service's",
	}
	var limited, unknown int
	var last, unclear string
	for _, st := range stages {
		switch limit, why := st.Machine.Limit(); limit {
		case LimitIsOurs:
			limited, last = limited+1, why
		case LimitUnknown:
			unknown, unclear = unknown+1, why
		}
	}
	if unknown > 0 {
		c.Actual, c.Pass = fmt.Sprintf("not known at %d of %d", unknown, len(stages)), false
		c.Reasons = []string{fmt.Sprintf("at %d of %d loads it is not known whether the load generator was the limit: %s", unknown, len(stages), unclear)}
	}
	if limited > 0 {
		of := fmt.Sprintf("at %d of %d", limited, len(stages))
		c.Reasons = []string{of + " loads the load generator was saturated, so these figures are lower bounds of the service's (" + last + ")"}
		if unknown > 0 {
			of += fmt.Sprintf(", not known at %d", unknown)
		}
		c.Actual, c.Pass = of, false
	}
	return c
}

func fixedTable(title string, l Limits, stages []StageResult) verdict.Table {
	t := verdict.Table{
		Title: title, Note: l.goodMeans(),
		Columns: []string{"stage", "requests", "failed", "answered/s", "p95 ms", "status", "limit"},
	}
	for i, v := range l.fixedLevels(stages) {
		st := stages[i]
		status, _ := l.Judge(v)
		limit, _ := st.Machine.Limit()
		t.Add(st.Title, format.Thousands(st.Total()), format.Thousands(st.Failed.Count()), count(st.PerSecond()), p95Cell(st.Requests), string(status), string(limit))
	}
	return t
}
