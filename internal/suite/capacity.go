package suite

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const streamsUnit = "connections"

var capacity = Suite{
	Name:   "capacity",
	Short:  "add event streams in steps until a noop is missed or late, or a connect fails",
	Script: []string{"load-tests", "sse", "capacity.js"},
	Settings: slices.Concat([]Setting{
		{"STEP", "connections that a step adds"},
		{"STEP_SECONDS", "seconds that a step lasts; then the noops that it still owes are awaited"},
		{"CEILING", "connections of the last step"},
	}, streamSettings, []Setting{
		{"MIN_CONNECTIONS", "connections that must be sustained for a pass; 0: any"},
	}),
	Target:  Target{Streams: true},
	Runners: oneRunner,
	Page:    Page{Doc: "docs/suites.md"},
	Assess:  assessCapacity,
}

func assessCapacity(r *Run) verdict.Assessment {
	m := r.begun()
	streams := verdict.StreamsOf(m, r.Server, r.OneHost)
	steps := r.steps(streams)
	tried := make([]Tried, 0, len(steps))
	for _, s := range steps {
		tried = append(tried, s.try())
	}
	b := FindBreaking(tried)
	first := lowestSustained("the first step is sustained", tried)
	if len(tried) > 0 && tried[0].Why != "" {
		first.Reasons = streams.Sentences(ledger.KindRefused, ledger.KindDropped, ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindLate)
	}
	return verdict.Assessment{
		Streams: streams,
		Facts:   append(b.facts(streamsUnit, "in bursts"), streamFacts(streams, m)...),
		Passed:  []string{b.Summary(streamsUnit)},
		Tables:  []verdict.Table{stepTable(steps), b.recommendations(streamsUnit), stepResources(r, steps)},
		Metrics: []verdict.Metric{{Name: "connections sustained", Unit: streamsUnit, Value: b.Sustained, HigherIsBetter: true}},
		Checks: slices.Concat(
			[]verdict.Check{everyStream(m), first, b.enough(r, "MIN_CONNECTIONS", "connections sustained"), endedWhenAsked(streams, m, b), climbExplained(m, b, steps)},
			streams.AtAnyLoad(), []verdict.Check{keptUp("at every step", " "+streamsUnit, tried)}),
	}
}

// begun is what the runners left, with the streams of the steps that were begun as those that were
// planned: a climb that has found the breaking point opens no more.
func (r *Run) begun() *shard.Merged {
	m := *r.Rounds[0]
	open := sumsByStage(&m, "capacity_streams")
	m.Plan.Connections = 0
	for _, st := range stagesOf(&m) {
		if _, ok := open[st.Name]; ok {
			m.Plan.Connections = st.Concurrency
		}
	}
	return &m
}

// endedWhenAsked fails a service that goes on with a sustained stream when it is asked to end it.
func endedWhenAsked(streams *verdict.Streams, m *shard.Merged, b Breaking) verdict.Check {
	c := verdict.Check{
		ID: CheckEnded, Name: "streams ended when asked", Limit: "all that were sustained", Actual: "all", Pass: true, Why: "a server that cannot end a stream fills up",
	}
	if b.Sustained == 0 {
		return c.NotJudged("no step was sustained")
	}
	var on int64
	for c := range streams.Records() {
		if n, ok := m.Plan.Number(c.ID); ok && float64(n) < b.Sustained && c.State == ledger.Unfinished {
			on++
		}
	}
	if on > 0 {
		c.Actual, c.Pass = format.Thousands(on)+" went on", false
		c.Reasons = []string{fmt.Sprintf("%s of %s sustained streams went on after the server was asked to end them", format.Thousands(on), count(b.Sustained))}
	}
	return c
}

// climbExplained makes a run invalid whose climb ended before the ceiling, though no step was bad.
func climbExplained(m *shard.Merged, b Breaking, steps []step) verdict.Check {
	stages := stagesOf(m)
	return verdict.Check{
		ID: CheckClimb, Name: "the climb ended for a reason", Limit: "a breaking point, or the ceiling", Actual: fmt.Sprintf("%d of %d steps", len(steps), len(stages)),
		Pass: b.Failed > 0 || len(steps) == len(stages), Severity: verdict.SeverityInconclusive, Why: "what was not tried is not known to break",
	}
}

func stepTable(steps []step) verdict.Table {
	t := verdict.Table{
		Title:   "Steps",
		Note:    "good: no connect failed, no stream was dropped, no noop missed or late of those due in the step; wrong: doubled, overtaken or damaged; lateness and connect in ms",
		Columns: []string{"held", "connect p50", "connect p99", "late p50", "late p99", "late max", "refused", "dropped", "missed", "late", "wrong", "status"},
	}
	for _, s := range steps {
		row := []string{format.Thousands(s.Concurrency), trend(s.connect, .5), trend(s.connect, .99), "–", "–", "–"}
		if s.lateness != nil {
			row = append(row[:3], quantiles(s.lateness, .5, .99, 1)...)
		}
		t.Rows = append(t.Rows, append(row, format.Thousands(s.refused), format.Thousands(s.dropped), format.Thousands(s.missed), format.Thousands(s.late), format.Thousands(s.wrong), string(s.try().Status)))
	}
	return t
}

func stepResources(r *Run, steps []step) verdict.Table {
	t := r.cpuTable("step", "runner", "")
	t.Columns[0] = "held"
	for _, s := range steps {
		t.Rows = append(t.Rows, s.machine.row(format.Thousands(s.Concurrency)))
	}
	return t
}
