package suite

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/ledger"
	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/verdict"
)

const streamsUnit = "connections"

var capacity = Suite{
	Name:   "capacity",
	Short:  "add event streams in steps until a noop is missed or late, or a connect fails",
	Script: []string{"load-tests", "sse", "ramp.js"},
	Settings: []Setting{
		{"STEP", "connections that a step adds"},
		{"STEP_SECONDS", "length of a step"},
		{"CEILING", "connections of the last step"},
		noopIntervalSetting,
		{"LATE_MS", "milliseconds above which a noop counts as late"},
		{"MIN_CONNECTIONS", "connections that must be sustained for a pass; 0: any"},
	},
	Streams: true, Runners: 1, Doc: "docs/stream-suites.md",
	Assess: assessCapacity,
}

// A step is some connections that were held for a while, and what went wrong meanwhile.
type step struct {
	shard.Stage
	from, to                       time.Time
	refused, dropped, missed, late int64
	idle                           int64 // of those dropped: this side gave up, because nothing came
	connect                        shard.Metric
	lateness                       *shard.Histogram
	machine                        Machine
}

// status says how a step was sustained. Lateness may be the generator's own, and so may silence on
// which it gave up; a refusal, a cut or a loss while a stream is held is not.
func (s step) status() (Status, string) {
	var why []string
	for _, f := range []struct {
		n    int64
		what string
	}{{s.refused, "connects failed"}, {s.dropped, "streams dropped"}, {s.missed, "noops missed"}, {s.late, "noops late"}} {
		if f.n > 0 {
			why = append(why, whole(f.n)+" "+f.what)
		}
	}
	switch {
	case len(why) == 0:
		return Good, ""
	case s.refused == 0 && s.dropped == s.idle && (s.missed == 0 || s.idle > 0) && s.machine.GeneratorLimit() != "":
		return ByGenerator, strings.Join(append(why, s.machine.GeneratorLimit()), "; ")
	}
	return Bad, strings.Join(why, ", ")
}

// steps are those that were begun, in order.
func (r *Run) steps() (out []step) {
	m := r.Rounds[0]
	if m.Suite == nil {
		return nil
	}
	open, connect := sumsByStage(m, "capacity_streams"), sumsByStage(m, "capacity_connect")
	faults := func(kind, stage string) int64 { return int64(sumsByStage(m, "capacity_"+kind)[stage].Sum) }
	for _, st := range m.Suite.Stages {
		seen, ok := open[st.Name]
		if !ok {
			continue
		}
		s := step{Stage: st, from: time.UnixMicro(seen.FirstUS), to: time.UnixMicro(seen.LastUS), connect: connect[st.Name]}
		s.refused, s.dropped = faults("refused", st.Name), faults("dropped", st.Name)
		s.missed, s.late = faults("missed", st.Name), faults("late", st.Name)
		s.idle = gaveUp(m, s.from, s.to)
		s.lateness = lateness(m, s.from, s.to)
		s.machine = r.machine(m, s.from, s.to)
		out = append(out, s)
	}
	return out
}

// gaveUp is how many streams the client closed between two instants, because nothing came.
func gaveUp(m *shard.Merged, from, to time.Time) (n int64) {
	for _, c := range m.Connections {
		if at := m.Runners[c.Runner].At(c.ClosedAt); c.State == ledger.Dropped && c.Reason == "idle" && !at.Before(from) && !at.After(to) {
			n++
		}
	}
	return n
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
	m, account, steps := r.Rounds[0], r.streams(), r.steps()
	b := capacityOf(steps)
	safe, burst := b.Ranges(streamsUnit)
	a := verdict.Assessment{
		Streams: account,
		Facts: append([]verdict.Fact{
			{Name: "breaks", Value: b.Sentence(streamsUnit)}, {Name: "safe", Value: safe}, {Name: "in bursts", Value: burst},
		}, streamFacts(account, m)...),
		Passed:  fmt.Sprintf("%s connections were sustained; breaking point %s", count(b.Sustained), b.Sentence(streamsUnit)),
		Tables:  []verdict.Table{stepTable(steps), recommendationTable(b.Sustained, streamsUnit), stepResources(r, steps)},
		Figures: []verdict.Figure{{Name: "connections sustained", Unit: streamsUnit, Value: b.Sustained, HigherIsBetter: true}},
	}
	a.Criteria = []verdict.Judged{firstStep(steps, account), enoughConnections(r, b), stepsByGenerator(steps)}
	return a
}

func firstStep(steps []step, account *verdict.Streams) verdict.Judged {
	c := verdict.Judged{Criterion: verdict.Criterion{
		Name: "the first step is sustained", Limit: "good", Actual: "there was none", Invalid: true, Why: "what breaks at once has no breaking point",
	}}
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

func enoughConnections(r *Run, b Breaking) verdict.Judged {
	least := r.number("MIN_CONNECTIONS")
	c := verdict.Judged{Criterion: verdict.Criterion{
		Name: "connections sustained", Limit: "any", Actual: count(b.Sustained), Pass: b.Sustained >= least,
		Invalid: b.Status == ByGenerator, Why: "what is planned with has to be sustained",
	}}
	if least > 0 {
		c.Limit = "at least " + count(least)
	}
	return c
}

// stepsByGenerator is advisory: a step at which the generator was the limit says nothing of the service.
func stepsByGenerator(steps []step) verdict.Judged {
	c := verdict.Judged{Criterion: verdict.Criterion{
		Name: "the generator kept up", Limit: "at every step", Actual: "it did", Pass: true, Advisory: true,
		Why: "a starved generator must not be read as a slow server",
	}}
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
		Note:    "good: no connect failed, no stream was dropped, no noop missed or late; lateness and connect in ms",
		Columns: []string{"held", "connect p50", "connect p99", "late p50", "late p99", "late max", "refused", "dropped", "missed", "late", "status"},
	}
	for _, s := range steps {
		status, _ := s.status()
		row := []string{whole(int64(s.Concurrency)), trend(s.connect, .5), trend(s.connect, .99), "–", "–", "–"}
		if s.lateness != nil {
			row = append(row[:3], figure(quantile(s.lateness, .5)), figure(quantile(s.lateness, .99)), figure(float64(s.lateness.Max().Microseconds())/1000))
		}
		t.Rows = append(t.Rows, append(row, whole(s.refused), whole(s.dropped), whole(s.missed), whole(s.late), string(status)))
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
