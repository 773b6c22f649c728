package shard

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/plan"
)

// checkRunners holds the runners against each other and against the plan: all there, each
// once, each ended, of one run and one script, and their segments tile 0 to 1.
func (m *Merged) checkRunners(parts []part) {
	seen := map[int]bool{}
	for i, r := range m.Runners {
		if seen[r.Index] {
			m.problem("runner %d left two shards", r.Index)
		}
		seen[r.Index] = true
		if r.Index > m.Plan.Runners {
			m.problem("runner %d is not one of the %d runners of the plan", r.Index, m.Plan.Runners)
		}
		if r.State != Finished {
			m.problem("runner %d on %s did not finish: %s", r.Index, r.Host, describe(r))
		}
		if m.Plan.TestID != "" && r.TestID != m.Plan.TestID {
			m.problem("the shard of runner %d is of the run %q, not of %q", r.Index, r.TestID, m.Plan.TestID)
		}
		if first := m.Runners[0]; r.ScriptHash != first.ScriptHash {
			m.problem("runner %d ran another script than runner %d", r.Index, first.Index)
		}
		if diff := planDifference(m.Plan, parts[i].plan, r.Index); m.Plan.Suite == "" && diff != "" {
			m.problem("runner %d ran another plan: %s", r.Index, diff)
		}
	}
	for i := 1; i <= m.Plan.Runners; i++ {
		if !seen[i] {
			m.problem("runner %d of %d left no shard", i, m.Plan.Runners)
		}
	}
	if len(m.Runners) > 0 {
		if gap := tile(m.Runners); gap != "" {
			m.problem("the execution segments do not cover the plan once: %s", gap)
		}
	}
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
// run and suite a shard is of is checked apart, and so is how many runners there are.
func planDifference(want, got plan.Plan, runner int) string {
	want.BackendURL, got.BackendURL = want.BackendOf(runner), got.BackendOf(runner)
	want.EndTimeoutS, got.EndTimeoutS = want.EndTimeout().Seconds(), got.EndTimeout().Seconds()
	return plan.Difference(want, got, "TESTID", "SOAK_RUN_ID", "SOAK_SUITE", "RUNNERS")
}

// tile says where the segments leave a gap or overlap, "" if they do neither.
func tile(runners []Runner) string {
	type segment struct{ from, to *big.Rat }
	var all []segment
	for _, r := range runners {
		from, to, ok := strings.Cut(r.Segment, ":")
		f, fOK := new(big.Rat).SetString(from)
		t, tOK := new(big.Rat).SetString(to)
		if !ok || !fOK || !tOK {
			return fmt.Sprintf("runner %d has the segment %q", r.Index, r.Segment)
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

// CheckConnections holds the ids against the plan: each planned one exactly once. It returns what
// is not so, in sentences. Of a suite Merge does not ask: one may have reasons to end early.
func (m *Merged) CheckConnections() (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	times := make([]uint8, m.Plan.Connections) // how often each was seen, up to 2
	foreign := map[string]bool{}
	for _, c := range m.Connections {
		if n, ok := m.Plan.Number(c.ID); ok {
			times[n] = min(times[n]+1, 2)
		} else {
			foreign[c.ID] = true
		}
	}
	var missing, twice []int
	for n, seen := range times {
		switch seen {
		case 0:
			missing = append(missing, n)
		case 2:
			twice = append(twice, n)
		}
	}
	if len(missing) > 0 {
		problem("%d of %s not observed: %s", len(missing), counted(m.Plan.Connections, "planned connection was", "planned connections were"), some(m.deviceIDs(missing)))
	}
	if len(twice) > 0 {
		problem("%s observed twice: %s", counted(len(twice), "connection was", "connections were"), some(m.deviceIDs(twice)))
	}
	if len(foreign) > 0 {
		problem("%s not of this plan: %s", counted(len(foreign), "connection is", "connections are"), some(slices.Sorted(maps.Keys(foreign))))
	}
	return problems
}

// deviceIDs are the ids of the first of these connections, as many as some needs.
func (m *Merged) deviceIDs(numbers []int) (ids []string) {
	for _, n := range numbers[:min(len(numbers), mostNamed+1)] {
		ids = append(ids, m.Plan.DeviceID(n))
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
