package suite

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const streamsUnit = "connections"

var capacity = Suite{
	Name:   "capacity",
	Short:  "add event streams in steps until a noop is missed or late, or a connect fails",
	Script: []string{"load-tests", "sse", "capacity.js"},
	Settings: []Setting{
		{"STEP", "connections that a step adds"},
		{"STEP_SECONDS", "seconds that a step lasts; then the noops that it still owes are awaited"},
		{"CEILING", "connections of the last step"},
		noopIntervalSetting,
		{"LATE_MS", "milliseconds above which a noop counts as late"},
		{"END_TIMEOUT", "seconds that a stream may take to end after the server answered the DELETE"},
		{"MIN_CONNECTIONS", "connections that must be sustained for a pass; 0: any"},
	},
	Streams: true, Runners: 1, Doc: "docs/stream-suites.md",
	OneMachine: "one runner has to know of all connections",
	Assess:     assessCapacity,
}

// capacityOf is the breaking point: the first step that was not good.
func capacityOf(steps []step) (b Breaking) {
	for _, s := range steps {
		status, why := s.status()
		if status != Good {
			b.Failed, b.Status, b.Why = float64(s.Concurrency), status, why
			return b
		}
		b.Sustained = float64(s.Concurrency)
	}
	return b
}

func assessCapacity(r *Run) verdict.Assessment {
	m := r.begun()
	account := verdict.Account(m, r.Server, r.OneHost)
	steps := r.steps(account)
	b := capacityOf(steps)
	safe, burst := b.Ranges(streamsUnit)
	a := verdict.Assessment{
		Streams: account,
		Facts: append([]verdict.Fact{
			{Name: "breaks", Value: b.Sentence(streamsUnit)}, {Name: "safe", Value: safe}, {Name: "in bursts", Value: burst},
		}, streamFacts(account, m)...),
		Passed:  []string{fmt.Sprintf("%s connections were sustained; breaking point %s", count(b.Sustained), b.Sentence(streamsUnit))},
		Tables:  []verdict.Table{stepTable(steps), recommendationTable(b.Sustained, streamsUnit), stepResources(r, steps)},
		Metrics: []verdict.Metric{{Name: "connections sustained", Unit: streamsUnit, Value: b.Sustained, HigherIsBetter: true}},
	}
	a.Criteria = append([]verdict.Criterion{everyStream(m), firstStep(steps, account), enoughConnections(r, b), endedWhenAsked(m, b), climbExplained(r, b, steps)},
		account.AtAnyLoad()...)
	a.Criteria = append(a.Criteria, stepsByGenerator(steps))
	return a
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
func endedWhenAsked(m *shard.Merged, b Breaking) verdict.Criterion {
	c := verdict.Criterion{
		Name: "streams ended when asked", Limit: "all that were sustained", Actual: "all", Pass: true, Why: "a server that cannot end a stream fills up",
	}
	var on int64
	for i := range m.Connections {
		if n, ok := m.Plan.Number(m.Connections[i].ID); ok && float64(n) < b.Sustained && m.Connections[i].State == ledger.Unfinished {
			on++
		}
	}
	if on > 0 {
		c.Actual, c.Pass = whole(on)+" went on", false
		c.Reasons = []string{fmt.Sprintf("%s of %s sustained streams went on after the server was asked to end them", whole(on), count(b.Sustained))}
	}
	return c
}

// climbExplained makes a run invalid whose climb ended before the ceiling, though no step was bad.
func climbExplained(r *Run, b Breaking, steps []step) verdict.Criterion {
	stages := stagesOf(r.Rounds[0])
	return verdict.Criterion{
		Name: "the climb ended for a reason", Limit: "a breaking point, or the ceiling", Actual: fmt.Sprintf("%d of %d steps", len(steps), len(stages)),
		Pass: b.Failed > 0 || len(steps) == len(stages), Invalid: true, Why: "what was not tried is not known to break",
	}
}

func firstStep(steps []step, account *verdict.Streams) verdict.Criterion {
	c := verdict.Criterion{
		Name: "the first step is sustained", Limit: "good", Actual: "there was none", Invalid: true, Why: "what breaks at once has no breaking point",
	}
	if len(steps) == 0 {
		return c
	}
	status, why := steps[0].status()
	c.Actual, c.Pass, c.Invalid = string(status), status == Good, status == ByGenerator
	if why != "" {
		c.Actual += ": " + why
		c.Reasons = account.Sentences(ledger.KindRefused, ledger.KindDropped, ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindLate)
	}
	return c
}

func enoughConnections(r *Run, b Breaking) verdict.Criterion {
	least := r.number("MIN_CONNECTIONS")
	c := verdict.Criterion{
		Name: "connections sustained", Limit: "any", Actual: count(b.Sustained), Pass: b.Sustained >= least,
		Invalid: b.Status == ByGenerator, Why: "what is planned with has to be sustained",
	}
	if least > 0 {
		c.Limit = "at least " + count(least)
	}
	return c
}

// stepsByGenerator is advisory: a step at which the generator was the limit says nothing of the service.
func stepsByGenerator(steps []step) verdict.Criterion {
	c := verdict.Criterion{
		Name: "the generator kept up", Limit: "at every step", Actual: "it did", Pass: true, Advisory: true,
		Why: "a starved generator must not be read as a slow server",
	}
	for _, s := range steps {
		if status, why := s.status(); status == ByGenerator {
			c.Actual, c.Pass = "not at "+whole(int64(s.Concurrency)), false
			c.Reasons = append(c.Reasons, fmt.Sprintf("at %s connections the generator was the limit, not the service: %s", whole(int64(s.Concurrency)), why))
		}
	}
	return c
}

func stepTable(steps []step) verdict.Table {
	t := verdict.Table{
		Title:   "Steps",
		Note:    "good: no connect failed, no stream was dropped, no noop missed or late of those due in the step; wrong: doubled, overtaken or damaged; lateness and connect in ms",
		Columns: []string{"held", "connect p50", "connect p99", "late p50", "late p99", "late max", "refused", "dropped", "missed", "late", "wrong", "status"},
	}
	for _, s := range steps {
		status, _ := s.status()
		row := []string{whole(int64(s.Concurrency)), trend(s.connect, .5), trend(s.connect, .99), "–", "–", "–"}
		if s.lateness != nil {
			row = append(row[:3], figure(quantile(s.lateness, .5)), figure(quantile(s.lateness, .99)), figure(float64(s.lateness.Max().Microseconds())/1000))
		}
		t.Rows = append(t.Rows, append(row, whole(s.refused), whole(s.dropped), whole(s.missed), whole(s.late), whole(s.wrong), string(status)))
	}
	return t
}

func stepResources(r *Run, steps []step) verdict.Table {
	t := verdict.Table{
		Title:   "CPU by step, % of one core",
		Note:    fmt.Sprintf("the machine has %d cores, and others may work on it; waited: the runners' threads, for a core", r.Cores),
		Columns: []string{"held", "runner", "nginx", "backend", "machine", "waited", "longest stall"},
	}
	for _, s := range steps {
		x := s.machine
		t.Rows = append(t.Rows, []string{
			whole(int64(s.Concurrency)), percentPoints(x.Runners), percentPoints(x.Nginx), percentPoints(x.Backend), percentPoints(x.Host),
			percentPoints(100 * x.RunDelay), fmt.Sprintf("%d ms", x.Stall.Milliseconds()),
		})
	}
	return t
}
