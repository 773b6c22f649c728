package suite

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Kinds of stages.
const (
	kindLoad   = "load"
	kindWarmup = "warmup"
)

const perSecond = "requests/s"

var rampup = Suite{
	Name:   "rampup",
	Short:  "raise the request rate in stages until the service breaks",
	Script: []string{"load-tests", "http", "rampUp.js"},
	Settings: append([]Setting{
		{"STAGES", "requests/s of the stages, with commas between"},
		{"STAGE_SECONDS", "length of a stage"},
		{"WARMUP_SECONDS", "length of the warm-up, which is not counted"},
		{"CEILING", "stages above this rate are left out; 0: none"},
		{"SEARCH", "1: run again between the last good and the first bad stage, until the two are within a tenth"},
		{"MIN_RATE", "requests/s that must be sustained for a pass; 0: any"},
	}, limitSettings...),
	Assess: assessRampup,
	Next:   searchRampup,
}

// limitSettings are of every suite that looks for a breaking point.
var limitSettings = []Setting{
	{"MAX_FAILED_PERCENT", "a load is bad if more than this share of its requests fails"},
	{"MAX_P95_MS", "a load is bad if the 95th percentile of its good answers is above this"},
	{"MIN_ANSWERED_PERCENT", "a load is bad if fewer than this share of the offered requests are answered well"},
	{"TIMEOUT_SECONDS", "how long a client waits for an answer"},
}

func (r *Run) limits() Limits {
	return Limits{FailedShare: r.number("MAX_FAILED_PERCENT") / 100, P95: r.number("MAX_P95_MS"), Answered: r.number("MIN_ANSWERED_PERCENT") / 100}
}

// searchRounds bounds the search: each round halves the distance.
const searchRounds = 6

func searchRampup(r *Run) map[string]string {
	if r.number("SEARCH") != 1 || len(r.Rounds) > searchRounds {
		return nil
	}
	next := r.limits().FindBreaking(arrivalLevels(loads(r.stages()))).Between()
	if next == 0 {
		return nil
	}
	return map[string]string{"STAGES": fmt.Sprint(next), "CEILING": "0"}
}

// loads are the stages that count.
func loads(all []StageResult) (out []StageResult) {
	for _, st := range all {
		if st.Kind == kindLoad {
			out = append(out, st)
		}
	}
	return out
}

// arrivalLevels are stages with a constant rate of arrivals, as levels.
func arrivalLevels(stages []StageResult) []Level {
	out := make([]Level, 0, len(stages))
	for _, st := range stages {
		out = append(out, st.level(st.Rate, st.Rate*st.Seconds))
	}
	return out
}

func assessRampup(r *Run) verdict.Assessment {
	stages := loads(r.stages())
	limits, levels := r.limits(), arrivalLevels(stages)
	breaking := limits.FindBreaking(levels)
	total := r.sumOf(func(st shard.Stage, _ map[string]string) bool { return st.Kind == kindLoad })
	var bytes float64
	var dropped int64
	for _, st := range stages {
		bytes += st.Bytes
		dropped += st.Dropped
	}
	safe, burst := breaking.Ranges(perSecond)
	a := verdict.Assessment{
		Facts: []verdict.Fact{
			totals(total, dropped),
			{Name: "received", Value: megabytes(bytes)},
			{Name: "breaks", Value: breaking.Sentence(perSecond)},
			{Name: "safe", Value: safe}, {Name: "in bursts", Value: burst},
		},
		Passed: []string{fmt.Sprintf("%s %s were sustained; breaking point %s", count(breaking.Sustained), perSecond, breaking.Sentence(perSecond))},
	}
	a.Criteria = append(a.Criteria, rightAnswers(total), baselineSustained(limits, levels), enough(r, breaking), generatorKeptUp(limits, levels))
	a.Criteria = append(a.Criteria, r.accounted()...)
	a.Tables = append(a.Tables, stageTable(limits, stages, levels), latencyTable(stages, total))
	a.Tables = append(a.Tables, detailTables(stages, total)...)
	a.Tables = append(a.Tables, recommendationTable(breaking.Sustained, perSecond))
	if len(stages) > 1 {
		a.Tables = append(a.Tables, stressTable(stages))
	}
	a.Tables = append(a.Tables, r.resourceTables(stages)...)
	a.Metrics = rampupFigures(stages, breaking)
	return a
}

func rampupFigures(stages []StageResult, b Breaking) []verdict.Metric {
	out := []verdict.Metric{{Name: "requests/s sustained", Unit: perSecond, Value: b.Sustained, HigherIsBetter: true}}
	for _, st := range stages {
		out = append(out, verdict.Metric{Name: "p95 at " + st.Title, Unit: "ms", Value: quantile(st.OK, .95)})
	}
	return out
}
