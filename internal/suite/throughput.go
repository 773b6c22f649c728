package suite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

var throughput = Suite{
	Name:   "throughput",
	Short:  "measure the highest request rate while concurrency rises",
	Script: []string{"load-tests", "http", "throughput.js"},
	Target: Target{SeparateCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessThroughput,
}

func peak(stages []StageResult) (best StageResult, ok bool) {
	if len(stages) == 0 {
		return best, false
	}
	return slices.MaxFunc(stages, func(a, b StageResult) int { return cmp.Compare(a.PerSecond(), b.PerSecond()) }), true
}

func boundText(st StageResult) string {
	switch limit, reason := st.Machine.Limit(); limit {
	case LimitGenerator:
		return "; a lower bound, because the load generator was saturated: " + reason
	case LimitUnknown:
		return "; perhaps a lower bound: " + reason
	case LimitService:
		return "; the service was the limit: " + reason
	}
	return ""
}

func assessThroughput(r *Run) verdict.Assessment {
	all := r.stages()
	levels, volumes := filterKind(all, kindLoad), filterKind(all, kindVolume)
	counted := append(slices.Clone(volumes), levels...)
	limits, sum := r.limits(), total(counted)
	a := verdict.Assessment{
		Facts: []verdict.Fact{sum.fact()},
		Checks: []verdict.Check{
			checkResponses(sum, all), checkLowestLoad("the lowest load is sustained", limits.Trials(limits.levels(levels))), checkGeneratorOfStages(counted),
		},
		Tables: []verdict.Table{fixedTable("By requests at a time", limits, levels), fixedTable("By number of requests", limits, volumes)},
	}
	if best, ok := peak(levels); ok {
		a.Facts = append(a.Facts, verdict.Fact{Name: "peak", Value: sentence("%v responses/s with %s%s", best.PerSecond(), best.Title, boundText(best))})
		if best.OK.Count() > 0 {
			lowest := best.Concurrency
			for _, st := range levels {
				if st.PerSecond() >= .9*best.PerSecond() {
					lowest = min(lowest, st.Concurrency)
				}
			}
			sufficient := sentence("a concurrency of %v reaches 90 %% of the peak; with more, requests only wait", lowest)
			a.Facts = append(a.Facts, verdict.Fact{Name: "sufficient", Value: sufficient})
		}
		a.Metrics = append(a.Metrics, best.rateMetric("peak responses/s"))
		passed := sentence("%v correct responses, %v per second at the peak", sum.OK.Count(), best.PerSecond())
		if n := sum.Failed.Count(); n > 0 {
			passed += sentence("; %s of %v requests failed", ratio(n, sum.Total()), sum.Total())
		}
		var bad []string
		for i, level := range limits.levels(counted) {
			if limits.Judge(level).Status == Bad {
				bad = append(bad, counted[i].Title)
			}
		}
		if len(bad) > 0 {
			passed += "; not sustained: " + strings.Join(bad, ", ")
		}
		a.Passed = []string{passed}
	}
	for _, st := range levels {
		a.Metrics = append(a.Metrics, st.rateMetric("responses/s with "+st.Title))
		a.Metrics = append(a.Metrics, st.timeMetrics("with "+st.Title, st.isGeneratorLimited())...)
	}
	if cpu, ok := r.cpuMetric(total(all).Total()); ok {
		a.Metrics = append(a.Metrics, cpu)
	}
	r.addRequests(&a, all, counted, sum)
	return a
}

func fixedTable(title string, l Limits, stages []StageResult) verdict.Table {
	t := newTable(title, l.String(), "stage|requests|failed|responses/s|p95 ms|status|limit")
	for i, level := range l.levels(stages) {
		st := stages[i]
		limit, _ := st.Machine.Limit()
		t.Add(row(st.Title, st.Total(), st.Failed.Count(), st.PerSecond(), p95Cell(st.Requests), l.Judge(level).Status, limit)...)
	}
	return t
}
