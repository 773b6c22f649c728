package shard

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// checkRunners compares the runners with each other and with the plan: each is there once and has
// finished, all are of one run and one script, and their segments cover 0 to 1 exactly once.
func (m *Merged) checkRunners(parts []part) {
	from := 0
	for i := range m.Groups {
		to := from + m.Groups[i].Runners
		m.checkGroup(&m.Groups[i], m.Runners[from:to], parts[from:to])
		from = to
	}
	m.checkOneRun()
}

func (m *Merged) checkGroup(g *Group, runners []Runner, parts []part) {
	if g.refused {
		return
	}
	want, seen := g.Plan, map[int]bool{}
	want.Runners = g.declared
	for i, r := range runners {
		who := m.who(g, r.Index)
		if seen[r.Index] {
			m.problem("%s left two shards", who)
		}
		seen[r.Index] = true
		if r.Index > g.Plan.Runners {
			m.problem("%s is not one of the %d runners of the plan", who, g.Plan.Runners)
		}
		if r.State != Finished {
			m.problem("%s on %s did not finish: %s", who, r.Host, describe(r))
		}
		if diff := planDifference(want, parts[i].plan, r.Index, plan.Parts); g.Plan.Connections > 0 && diff != "" {
			m.problem("%s ran another plan: %s", who, diff)
		}
	}
	missing := g.Plan.Runners
	for index := range seen {
		if index <= g.Plan.Runners {
			missing--
		}
	}
	for i, named := 1, 0; named < min(missing, mostMissing); i++ {
		if !seen[i] {
			m.problem("%s of %d left no shard", m.who(g, i), g.Plan.Runners)
			named++
		}
	}
	if missing > mostMissing {
		m.problem("%d more runners left no shard", missing-mostMissing)
	}
	if len(runners) > 0 {
		if gap := tile(runners); gap != "" {
			m.problem("the execution segments%s do not cover the plan once: %s", m.of(g), gap)
		}
	}
}

// mostMissing is how many of the runners that left no shard are named.
const mostMissing = 10

// checkOneRun checks that the runners of all groups are of one run.
func (m *Merged) checkOneRun() {
	for _, r := range m.Runners {
		first := m.Runners[0]
		switch {
		case m.Plan.TestID != "" && r.TestID != m.Plan.TestID:
			m.problem("the shard of runner %d is of the run %q, not of %q", r.Index, r.TestID, m.Plan.TestID)
		case m.Plan.RunID != "" && r.RunID != m.Plan.RunID:
			m.problem("the shard of %s is of another run of that name, which began at %s: remove it", r.String(), stamp(r.Started()))
		}
		if r.ScriptHash != first.ScriptHash {
			m.problem("runner %d ran another script than runner %d", r.Index, first.Index)
		}
		if r.K6Version != first.K6Version {
			m.problem("%s ran k6 %s, %s ran %s: use one version", r.String(), r.K6Version, first.String(), first.K6Version)
		}
	}
	m.checkOverlap()
}

// leastShared is the share of the planned hold for which all runners of a soak have to run at the same time.
const leastShared = .75

// checkOverlap finds a runner that ran before or after another one: a shard of an earlier run must
// not stand in for one that is missing. Nor are runners that hardly overlap one soak: the service never held
// all of their streams. Of one that did not finish the end is not known.
func (m *Merged) checkOverlap() {
	var began, ended *Runner // the last to begin, the first to end
	for i := range m.Runners {
		r := &m.Runners[i]
		if r.State != Finished {
			continue
		}
		if began == nil || r.StartedUS > began.StartedUS {
			began = r
		}
		if ended == nil || r.EndedUS < ended.EndedUS {
			ended = r
		}
	}
	if began == nil {
		return
	}
	if began.StartedUS <= ended.EndedUS {
		if m.Plan.Connections > 0 {
			m.checkShared(began)
		}
		return
	}
	m.problem("%s ended at %s, before %s began at %s: they are not of one run, so remove the shard that is not of it; or their clocks differ, so set them and run again",
		ended.String(), stamp(time.UnixMicro(ended.EndedUS)), began.String(), stamp(began.Started()))
}

// checkShared compares the time in which all runners ran with the plan. A runner that ended early counts as if it
// had run for the planned time: a service that cuts its streams off fails, by other criteria.
func (m *Merged) checkShared(last *Runner) {
	planned := m.Plan.Hold()
	first, shared := last, time.Duration(math.MaxInt64)
	for i := range m.Runners {
		r := &m.Runners[i]
		if r.State != Finished {
			continue
		}
		end := max(r.EndedUS, r.StartedUS+planned.Microseconds())
		if d := time.Duration(end-last.StartedUS) * time.Microsecond; d < shared {
			first, shared = r, d
		}
	}
	if float64(shared) >= leastShared*float64(planned) {
		return
	}
	m.problem("%s and %s ran at the same time for only %s of the %s that were planned: start them together (%g %% have to be common); or their clocks differ, so set them and run again",
		first.String(), last.String(), shared.Round(100*time.Millisecond), planned, 100*leastShared)
}

func describe(r Runner) string {
	what := map[RunState]string{
		Running:     "it was killed, or could not deliver its end; this is its last checkpoint, " + time.UnixMicro(r.EndedUS).UTC().Format(time.TimeOnly) + " UTC",
		Interrupted: "it was interrupted", Aborted: "it was aborted",
	}[r.State]
	if what == "" {
		what = fmt.Sprintf("its state is %q", r.State)
	}
	if r.Error != "" {
		what += " (" + r.Error + ")"
	}
	return what
}

// planDifference names the first thing in which a script understood the plan differently. Which
// run and suite a shard is of is checked apart.
func planDifference(want, got plan.Plan, runner int, scope plan.Scope) string {
	want.BackendURL, got.BackendURL = want.BackendOf(runner), got.BackendOf(runner)
	want.EndTimeoutS, got.EndTimeoutS = want.EndTimeout().Seconds(), got.EndTimeout().Seconds()
	return plan.Difference(want, got, scope)
}

// tile says where the segments leave a gap or overlap, "" if they do neither.
func tile(runners []Runner) string {
	type segment struct{ from, to *big.Rat }
	var all []segment
	for _, r := range runners {
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
		if c := s.from.Cmp(at); c != 0 {
			return fmt.Sprintf("%s between %s and %s", map[bool]string{true: "a gap", false: "an overlap"}[c > 0], at.RatString(), s.from.RatString())
		}
		at = s.to
	}
	if at.Cmp(big.NewRat(1, 1)) != 0 {
		return fmt.Sprintf("they end at %s, not at 1", at.RatString())
	}
	return ""
}

// fraction reads what k6 writes: 0, 1, 1/3, .25. A number such as 1e999999999 would take the
// memory of a machine.
func fraction(text string) (*big.Rat, bool) {
	if len(text) > 40 || strings.Trim(text, "0123456789./") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// CheckConnections holds the ids against the plan: each planned one exactly once. It returns what
// is not so, in sentences. Of a suite Merge does not ask: one may have reasons to end early.
func (m *Merged) CheckConnections() (problems []string) {
	switch {
	case len(m.Groups) == 1 && m.Groups[0].refused:
		return nil
	case len(m.Groups) < 2:
		return checkIDs(m.Plan, m.Connections)
	}
	connections, runners := m.Connections, 0 // in order of their runners
	for i := range m.Groups {
		g := &m.Groups[i]
		runners += g.Runners
		end, _ := slices.BinarySearchFunc(connections, runners, func(c Connection, runner int) int { return cmp.Compare(c.Runner, runner) })
		if !g.refused {
			problems = append(problems, checkIDs(g.Plan, connections[:end])...)
		}
		connections = connections[end:]
	}
	return problems
}

func checkIDs(p plan.Plan, connections []Connection) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	times := make([]uint8, p.Connections) // how often each was seen, up to 2
	foreign := map[string]bool{}
	for _, c := range connections {
		if n, ok := p.Number(c.ID); ok {
			times[n] = min(times[n]+1, 2)
		} else {
			foreign[c.ID] = true
		}
	}
	var missing, twice numbers
	for n, seen := range times {
		switch seen {
		case 0:
			missing.add(n)
		case 2:
			twice.add(n)
		}
	}
	if missing.count > 0 {
		problem("%d of %s not observed: %s", missing.count, counted(p.Connections, "planned connection was", "planned connections were"), some(missing.ids(p)))
	}
	if twice.count > 0 {
		problem("%s observed twice: %s", counted(twice.count, "connection was", "connections were"), some(twice.ids(p)))
	}
	if len(foreign) > 0 {
		problem("%s not of this plan: %s", counted(len(foreign), "connection is", "connections are"), some(slices.Sorted(maps.Keys(foreign))))
	}
	return problems
}

// numbers are those of connections: how many, and the first of them, as many as some needs.
type numbers struct {
	count int
	first []int
}

func (n *numbers) add(number int) {
	if n.count++; len(n.first) <= mostNamed {
		n.first = append(n.first, number)
	}
}

func (n *numbers) ids(p plan.Plan) (ids []string) {
	for _, number := range n.first {
		ids = append(ids, p.DeviceID(number))
	}
	return ids
}

// counted is a number of things, in the form that goes with it.
func counted(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

const mostNamed = 5

func some(ids []string) string {
	if len(ids) <= mostNamed {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:mostNamed], ", ") + ", …"
}
