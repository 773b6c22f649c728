package suite

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	streamsUnit = "connections" // of the metric, which is compared with earlier runs
	streamsNoun = "streams"     // in sentences and columns
)

var capacity = Suite{
	Name:    "capacity",
	Short:   "add streams in steps until a message is missed or late, or a connection fails",
	Script:  []string{"load-tests", "sse", "capacity.js"},
	Target:  Target{Streams: true},
	Runners: oneRunner,
	Page:    Page{Doc: "docs/suites.md"},
	Assess:  assessCapacity,
}

func assessCapacity(r *Run) verdict.Assessment {
	m := r.startedSteps()
	streams := verdict.StreamsOf(m, r.Server, r.OneHost)
	steps := r.steps(streams)
	t := newTable("Steps", "good: no connect failed, no stream was dropped, and no noop expected in the step was missed or late. "+
		"Wrong: duplicated, reordered or corrupted. Lateness and connect in ms; –: the step is too short to measure lateness",
		"streams|connect p50|connect p99|late p50|late p99|late max|refused|dropped|missed|late|wrong|status")
	cpu := r.cpuTable("step", "runner", "")
	cpu.Columns[0] = "streams"
	trials := make([]Trial, 0, len(steps))
	for _, s := range steps {
		result := s.trial()
		late := quantiles(s.lateness, .5, .99, 1)
		t.Add(row(s.Concurrency, trend(s.connect, .5), trend(s.connect, .99), late[0], late[1], late[2],
			s.refused, s.dropped, s.missed, s.late, s.faults, result.Status)...)
		cpu.Rows = append(cpu.Rows, s.machine.row(text(s.Concurrency)))
		trials = append(trials, result)
	}
	b, stages := findBreakingPoint(trials), stagesOf(m)
	first := checkLowestLoad("the first step is sustained", trials)
	if len(trials) > 0 && trials[0].Reason != "" {
		first.Reasons = append(first.Reasons,
			streams.Sentences(ledger.KindRefused, ledger.KindDropped, ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindLate)...)
	}
	climbCheck := check(CheckClimb, "all steps were tried", "up to a breaking point or the ceiling",
		fmt.Sprintf("%d of %d steps", len(steps), len(stages)), b.Failed > 0 || len(steps) == len(stages))
	return verdict.Assessment{
		Streams: streams,
		Facts:   append(b.facts(streamsNoun), streamFacts(streams, m)...),
		Passed:  []string{b.Summary(streamsNoun)},
		Tables:  []verdict.Table{t, b.recommendations(streamsNoun), cpu},
		Metrics: []verdict.Metric{{Name: "connections sustained", Unit: streamsUnit, Value: b.Sustained, HigherIsBetter: true}},
		Checks: slices.Concat([]verdict.Check{
			checkObserved(m), first, b.checkSustained(r, "MIN_CONNECTIONS", "streams sustained"), checkEnds(streams, m, b), climbCheck.AsDoubt(),
		}, streams.LoadIndependentChecks(), []verdict.Check{checkGeneratorAtLoads("at every step", " "+streamsNoun, trials)}),
	}
}

// startedSteps returns the merged shards, with Plan.Connections set to the number of streams in the last started step.
// No step starts after the breaking point.
func (r *Run) startedSteps() *shard.Merged {
	m := *r.Rounds[0]
	streams := sumsByStage(&m, "capacity_streams")
	m.Plan.Connections = 0
	for _, st := range stagesOf(&m) {
		if _, ok := streams[st.Name]; ok {
			m.Plan.Connections = st.Concurrency
		}
	}
	return &m
}

func checkEnds(streams *verdict.Streams, m *shard.Merged, b BreakingPoint) verdict.Check {
	var open int64
	for _, c := range streams.Records() {
		if n, ok := m.Plan.Number(c.ID); ok && float64(n) < b.Sustained && c.State == ledger.Unfinished {
			open++
		}
	}
	actual := "all"
	if open > 0 {
		actual = text(open) + " stayed open"
	}
	c := check(CheckEnded, "streams ended on request", "all sustained streams", actual, open == 0,
		sentence("%v of %v sustained streams stayed open after the request to end them", open, b.Sustained))
	if b.Sustained == 0 {
		return c.NotJudged("no step was sustained")
	}
	return c
}
