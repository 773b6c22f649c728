package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

var rampup = Suite{
	Name:   "rampup",
	Short:  "raise the request rate in stages until the service breaks",
	Script: []string{"load-tests", "http", "rampUp.js"},
	Target: Target{SeparateCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessRampup,
	Next:   searchRampup,
}

func (r *Run) limits() Limits {
	return Limits{FailedShare: r.share("MAX_FAILED_PERCENT"), P95: r.number("MAX_P95_MS"), AnsweredShare: r.share("MIN_ANSWERED_PERCENT")}
}

// searchRounds is the maximum number of rounds of a search, not counting the planned stages and the repeated load.
const searchRounds = 6

// searchRampup returns the environment of the next round of a search: a load between the last good and the first bad
// one, and in the last round the sustained load once more. It returns nil if there is nothing left to try.
func searchRampup(r *Run) map[string]string {
	if r.number("SEARCH") != 1 {
		return nil
	}
	stages := filterKind(r.stages(), kindLoad)
	limits := r.limits()
	breaking := findBreakingPoint(limits.Trials(limits.levels(stages)))
	next := breaking.NextLoad()
	if next == 0 || len(r.Rounds) > searchRounds {
		next = breaking.repeatLoad(stages)
	}
	if next == 0 {
		return nil
	}
	return map[string]string{"STAGES": strconv.FormatFloat(next, 'f', -1, 64), "CEILING": "0"}
}

// repeatLoad returns the highest sustained load, to repeat it at the end of the search. It returns 0 if the search
// found no breaking point or no sustained load, or if the last stage had that load. A service that does not sustain the
// load again gets slower with time, or does not recover from overload.
func (b BreakingPoint) repeatLoad(stages []StageResult) float64 {
	if b.Status != Bad || b.Sustained == 0 || stages[len(stages)-1].Rate == b.Sustained {
		return 0
	}
	return b.Sustained
}

func assessRampup(r *Run) verdict.Assessment {
	all := r.stages()
	stages := filterKind(all, kindLoad)
	limits := r.limits()
	levels := limits.levels(stages)
	trials := limits.Trials(levels)
	breaking, sum := findBreakingPoint(trials), total(stages)
	bottleneck := findBottleneck(stages, breaking)
	t := newTable("Stages", limits.String()+"; responses/s: good responses between the earliest possible response and the end of the stage",
		"stage|requests|failed|not made|responses/s|p95 ms|status")
	metrics := []verdict.Metric{{Name: "requests/s sustained", Unit: perSecond, Value: breaking.Sustained, HigherIsBetter: true}}
	var bytes float64
	for i, st := range stages {
		status := limits.Judge(levels[i]).Status
		t.Add(row(st.Title, st.Total(), st.Failed.Count(), st.Dropped, st.PerSecond(), p95Cell(st.Requests), status)...)
		bytes += st.BytesReceived
		// A stage that repeats an earlier one has no further metrics.
		if !slices.ContainsFunc(stages[:i], func(before StageResult) bool { return before.Title == st.Title }) {
			metrics = append(metrics, st.timeMetrics("at "+st.Title, status == ByGenerator)...)
		}
	}
	a := verdict.Assessment{
		Facts: slices.Concat([]verdict.Fact{sum.fact(), {Name: "received", Value: fmt.Sprintf("%.1f MB", bytes/1e6)}},
			breaking.facts(perSecond), bottleneck.facts(), speedupFacts(stages, levels, limits)),
		Checks: []verdict.Check{
			checkResponses(sum, all), checkLowestLoad("the lowest load is sustained", trials), breaking.checkSustained(r, "MIN_RATE", "requests/s sustained"),
			checkGeneratorAtLoads("at every load", " requests/s", trials),
		},
		Tables: []verdict.Table{t}, Metrics: metrics, Passed: []string{breaking.Summary(perSecond)},
	}
	extra := append(bottleneck.tables(), breaking.recommendations(perSecond))
	if len(stages) > 1 {
		extra = append(extra, stressTable(stages))
	}
	r.addRequests(&a, all, stages, sum, extra...)
	return a
}

func stressTable(stages []StageResult) verdict.Table {
	byRate := func(a, b StageResult) int { return cmp.Compare(a.Rate, b.Rate) }
	low, high := slices.MinFunc(stages, byRate), slices.MaxFunc(stages, byRate)
	t := newTable("Baseline against stress", "", "|"+low.Title+"|"+high.Title+"|change")
	add := func(name string, a, b float64, text func(float64) string) {
		t.Add(name, text(a), text(b), change(a, b))
	}
	add("responses/s", low.PerSecond(), high.PerSecond(), count)
	add("failed", low.FailedShare(), high.FailedShare(), percentOf)
	add("mean", low.Mean(), high.Mean(), ms)
	for _, percent := range []int{50, 95, 99} {
		at := float64(percent) / 100
		add(fmt.Sprintf("p%d", percent), quantile(low.OK, at), quantile(high.OK, at), ms)
	}
	return t
}
