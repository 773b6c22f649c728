package shard

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// checkRunners compares the runners with each other and with the plan. Each must have finished and left one shard,
// unless it was replaced; an early end is listed in EarlyEnds instead of Problems. All must belong to one run, with one
// script and one version of k6. Their segments must cover 0 to 1 exactly once.
func (m *Merged) checkRunners(parts []part) {
	for i := range m.groups {
		g := &m.groups[i]
		m.checkGroup(g, m.runnersOf(g), parts[g.first:])
	}
	m.checkOneRun()
	m.checkServices(parts)
}

func (m *Merged) checkGroup(g *group, runners []Runner, parts []part) {
	if g.hasTwoRuns {
		return
	}
	byIndex := map[int]*Runner{}
	for i := range runners {
		r, want := &runners[i], g.plan
		want.Runners = g.plannedRunners
		runnerName := m.runnerName(g, r.Index)
		if previous := byIndex[r.Index]; previous != nil {
			m.replace(runnerName, previous, r)
		}
		if byIndex[r.Index] = r; r.ReplacedStartUS != 0 {
			want.Seconds = parts[i].plan.Seconds // the time from the start of the runner to the end of the run
		}
		if r.Index > g.plan.Runners {
			m.problem("%s is not in the plan, which has %s", runnerName, format.Plural(g.plan.Runners, "runner", "runners"))
		}
		switch {
		case r.State == Finished:
		case r.EndedEarly():
			text := describeState(*r)
			if i+1 < len(runners) && runners[i+1].Index == r.Index {
				text = cmp.Or(suspensionBetween(r, &runners[i+1]), text)
			}
			m.EarlyEnds = append(m.EarlyEnds, fmt.Sprintf("%s%s did not finish: %s", runnerName, r.onHost(), text))
		default:
			m.problem("%s%s did not finish: %s", runnerName, r.onHost(), describeState(*r))
		}
		if text := suspension(r); text != "" {
			m.problem("%s%s did not run without interruption: %s", runnerName, r.onHost(), text)
		}
		if diff := planDifference(want, parts[i].plan, r.Index, plan.Parts); g.plan.Connections > 0 && diff != "" {
			m.problem("%s ran another plan: %s", runnerName, diff)
		}
	}
	m.checkPublisher(g, runners)
	missing := g.plan.Runners
	for index := range byIndex {
		if index <= g.plan.Runners {
			missing--
		}
	}
	for i, listed := 1, 0; listed < min(missing, maxMissing); i++ {
		if byIndex[i] == nil {
			m.problem("runner %d of %d%s left no shard", i, g.plan.Runners, m.groupName(g))
			listed++
		}
	}
	if missing > maxMissing {
		m.problem("%s left no shard", format.Plural(missing-maxMissing, "more runner", "more runners"))
	}
	if len(runners) > 0 {
		if gap := describeGap(runners); gap != "" {
			m.problem("the execution segments%s do not cover the plan exactly once: %s", m.groupName(g), gap)
		}
	}
}

// replace marks a runner as replaced by a later one with the same index. If that is impossible, it reports a problem.
func (m *Merged) replace(runnerName string, previous, r *Runner) {
	switch {
	case r.ReplacedStartUS == 0 || !previous.EndedEarly():
		m.problem("%s left two shards", runnerName)
	case previous.EndedUS > r.StartedUS:
		m.problem("%s was replaced at %s, but it ran until %s", runnerName, format.Time(r.Started()), format.Time(time.UnixMicro(previous.EndedUS)))
	default:
		previous.Replaced = true
	}
}

// maxMissing is the maximum number of problems that name a runner without a shard.
const maxMissing = 10

// checkOneRun checks that all runners belong to one run, ran at the same time, and ran one script with one version of
// k6.
func (m *Merged) checkOneRun() {
	for i, r := range m.Runners {
		first := m.Runners[0]
		switch {
		case m.Plan.TestID != "" && r.TestID != m.Plan.TestID:
			m.problem("the shard of %s belongs to the run %q, not to %q", m.nameAt(i), r.TestID, m.Plan.TestID)
		case m.Plan.RunID != "" && r.RunID != m.Plan.RunID:
			m.problem("the shard of %s belongs to another run with the same test id (the runner started at %s); remove the shard", m.nameAt(i), format.Time(r.Started()))
		}
		if r.ScriptHash != first.ScriptHash {
			m.problem("%s ran a different script from %s; use one script", m.nameAt(i), m.nameAt(0))
		}
		if r.K6Version != first.K6Version {
			m.problem("%s ran k6 %s, but %s ran %s; use one version", m.nameAt(i), r.K6Version, m.nameAt(0), first.K6Version)
		}
	}
	m.checkOverlap()
}

// suspensionBetween describes the suspension of a machine between a runner and its replacement, or returns "".
func suspensionBetween(before, after *Runner) string {
	if before.Machine == nil || after.Machine == nil || before.Machine.Boot != after.Machine.Boot {
		return ""
	}
	from, to := before.Machine.Series(machine.Suspension), after.Machine.Series(machine.Suspension)
	if from == nil || to == nil || to.Begin-from.End < machine.SuspendedResolution.Seconds() {
		return ""
	}
	return fmt.Sprintf("its machine was suspended for %s until about %s, and its last checkpoint is from %s UTC; keep the machine awake (systemd-inhibit)",
		format.Duration(seconds(to.Begin-from.End)), format.Time(after.Started()), time.UnixMicro(before.EndedUS).UTC().Format(time.TimeOnly))
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(machine.SuspendedResolution)
}

// suspension describes the suspensions of the machine while a runner ran, or returns "".
func suspension(r *Runner) string {
	if r.Machine == nil {
		return ""
	}
	s := r.Machine.Series(machine.Suspension)
	if s == nil || len(s.Stretches) == 0 {
		return ""
	}
	return fmt.Sprintf("its machine was suspended for %s, first at %s; keep the machine awake (systemd-inhibit)",
		format.Duration(seconds(s.Increase)), format.Time(s.Stretches[0].From()))
}

// HasData reports whether the runner stored data after its start. Otherwise it left only its first checkpoint.
func (r *Runner) HasData() bool {
	return r.State == Finished || r.EndedUS-r.StartedUS >= time.Second.Microseconds()
}

// HasData reports whether any runner stored data after its start.
func (m *Merged) HasData() bool {
	return slices.ContainsFunc(m.Runners, func(r Runner) bool { return r.HasData() })
}

func describeState(r Runner) string {
	lastData := "the data ends at "
	if !r.HasData() {
		lastData = "it stored no data after its start at "
	}
	text := map[RunState]string{
		Running:     "it left no final shard (file of its results); " + lastData + time.UnixMicro(r.EndedUS).UTC().Format(time.TimeOnly) + " UTC",
		Interrupted: "it was interrupted", Aborted: "it was aborted",
	}[r.State]
	if text == "" {
		text = fmt.Sprintf("its state is %q", r.State)
	}
	if r.Error != "" {
		text += " (" + r.Error + ")"
	}
	return text
}

// planDifference describes the first difference between two plans. Other checks compare run and suite.
func planDifference(want, got plan.Plan, runner int, scope plan.Scope) string {
	want.BackendURL, got.BackendURL = want.BackendOf(runner), got.BackendOf(runner)
	want.EndTimeoutS, got.EndTimeoutS = want.EndTimeout().Seconds(), got.EndTimeout().Seconds()
	return plan.Difference(want, got, scope)
}

func describeGap(runners []Runner) string {
	type segment struct{ from, to *big.Rat }
	var all []segment
	for _, r := range runners {
		if r.Replaced {
			continue
		}
		from, to, ok := strings.Cut(r.Segment, ":")
		f, fOK := fraction(from)
		t, tOK := fraction(to)
		if !ok || !fOK || !tOK {
			return fmt.Sprintf("runner %d has the segment %.80q", r.Index, r.Segment)
		}
		all = append(all, segment{f, t})
	}
	slices.SortFunc(all, func(a, b segment) int { return a.from.Cmp(b.from) })
	at := new(big.Rat)
	for _, s := range all {
		switch s.from.Cmp(at) {
		case 1:
			return fmt.Sprintf("a gap between %s and %s", at.RatString(), s.from.RatString())
		case -1:
			return fmt.Sprintf("an overlap between %s and %s", s.from.RatString(), at.RatString())
		}
		at = s.to
	}
	if at.Cmp(big.NewRat(1, 1)) != 0 {
		return fmt.Sprintf("they end at %s, not at 1", at.RatString())
	}
	return ""
}

// fraction parses a fraction in k6's notation, such as 1/3 or .25. It rejects exponents: 1e999999999 would exhaust the
// memory.
func fraction(text string) (*big.Rat, bool) {
	if len(text) > 40 || strings.Trim(text, "0123456789./") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
