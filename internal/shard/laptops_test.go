package shard

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// laptopShards returns the shards of one laptop that ran k6 without soak.
func laptopShards(prefix string, runners, connections int) []*Shard {
	p := planFor(runners, connections)
	p.Prefix, p.Marker = prefix, prefix // k6 alone uses the prefix as marker
	parts, _ := randomRun(rand.New(rand.NewPCG(7, 8)), p)
	for i := range parts {
		parts[i].Plan.Runners = 1 // the default of k6 alone
		parts[i].Runner.Host, parts[i].Runner.Process = "host-of-"+prefix, NewID()
	}
	return parts
}

func mergeWithoutPlan(groups ...[]*Shard) *Merged {
	var g Merger
	for _, group := range groups {
		for _, s := range group {
			g.Add(s)
		}
	}
	return g.MergeWithoutPlan()
}

func TestShardsOfLaptopsMerge(t *testing.T) {
	t.Parallel()
	b := laptopShards("laptop-b-", 1, 3)
	m := mergeWithoutPlan(b, laptopShards("laptop-a-", 2, 4))
	require.Empty(t, m.Problems)
	require.Equal(t, 7, m.Plan.Connections)
	require.Equal(t, 3, m.Plan.Runners)
	require.Equal(t, "laptop-a-,laptop-b-", m.Plan.Prefix)
	require.Equal(t, 7, m.Connections.Len())
	require.Equal(t, "laptop-b-2", m.Connections.Edit(6).ID)
	require.Equal(t, 3, m.Runners[2].Index, "the numbers of runners must be unique in a verdict")
	require.Equal(t, "host-of-laptop-b-, PREFIX laptop-b-", m.Laptop(m.Connections.Edit(6).Runner))
	require.Equal(t, `host-of-, PREFIX ""`, mergeWithoutPlan(laptopShards("", 1, 3), b).Laptop(0))
	require.Empty(t, mergeWithoutPlan(b).Laptop(0), "Laptop must be empty for a single laptop")
	require.Equal(t, "laptop-b-", mergeWithoutPlan(b).Plan.Prefix)
}

func TestMergeWithoutPlanReportsIncompatibleLaptops(t *testing.T) {
	t.Parallel()
	change := func(parts []*Shard, do func(s *Shard)) []*Shard {
		for _, s := range parts {
			do(s)
		}
		return parts
	}
	for name, c := range map[string]struct {
		groups [][]*Shard
		want   []string
	}{
		"one PREFIX for two laptops": {[][]*Shard{laptopShards("a-", 1, 3), laptopShards("a-", 1, 5)}, []string{
			`two runs have the PREFIX "a-": runner 1 on host-of-a- from 2023-11-14 22:13:20 UTC on, and runner 1 on host-of-a- from`,
		}},
		"one PREFIX at two times": {[][]*Shard{laptopShards("a-", 1, 3), change(laptopShards("a-", 1, 5), func(s *Shard) { s.Runner.StartedUS += 3600e6; s.Runner.EndedUS += 3600e6 })}, []string{
			`two runs have the PREFIX "a-": runner 1 on host-of-a- from`,
		}},
		"ids that overlap": {[][]*Shard{laptopShards("a", 1, 20), laptopShards("a1", 1, 5)}, []string{
			`the client ids of PREFIX "a" with 20 clients and of "a1" with 5 overlap: a10 is in both; choose prefixes that do not begin with each other`,
		}},
		"ids that would overlap with more": {[][]*Shard{laptopShards("a", 1, 10), laptopShards("a1", 1, 5)}, nil},
		"prefixes that do not overlap":     {[][]*Shard{laptopShards("a", 1, 20), laptopShards("a0", 1, 5)}, nil},
		"a different limit of lateness": {[][]*Shard{laptopShards("a-", 1, 3), change(laptopShards("b-", 1, 3), func(s *Shard) { s.Plan.MaxLate = 0 })}, []string{
			`the laptop with PREFIX "b-" ran a different plan from the one with "a-": MAX_LATE is 0, not -1`,
		}},
		"half a laptop": {[][]*Shard{laptopShards("a-", 1, 3), laptopShards("b-", 2, 4)[:1]}, []string{
			"the execution segments of b- do not cover the plan exactly once: they end at 1/2, not at 1", "2 of 4 planned clients were not observed: b-2, b-3",
		}},
		"a different run": {[][]*Shard{laptopShards("a-", 1, 3), change(laptopShards("b-", 1, 3), func(s *Shard) { s.Runner.TestID = "y" })}, []string{`belongs to the run "y", not to "t"`}},
		"a different k6":  {[][]*Shard{laptopShards("a-", 1, 3), change(laptopShards("b-", 1, 3), func(s *Shard) { s.Runner.K6Version = "v9" })}, []string{"runner 1 of b- on host-of-b- ran k6 v9"}},
		"a short overlap": {[][]*Shard{change(laptopShards("a-", 1, 3), func(s *Shard) { s.Runner.EndedUS += 3540e6 }), change(laptopShards("b-", 1, 3), func(s *Shard) { s.Runner.StartedUS += 3120e6; s.Runner.EndedUS += 7200e6 })}, []string{
			"runner 1 of a- on host-of-a- and runner 1 of b- on host-of-b- ran at the same time for only 8 min of the planned 59 min 55 s",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mergeWithoutPlan(c.groups...)
			found := append(m.EarlyEnds, m.Problems...)
			require.Len(t, found, len(c.want), "%q", found)
			for i, want := range c.want {
				require.Contains(t, found[i], want)
			}
		})
	}
}

// Two runners plan to hold for 15 s, and run for 20 s. If they start 13 s apart, they run at the same time for 7 s. A
// runner that ended early because the service closed its streams counts as if it had run to the end.
func TestShardsOfDifferentTimesAreAProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		start, length float64 // of the second runner in seconds; the first one starts at 0 and runs for 20 s
		state         RunState
		suite         string
		problems      int
	}{
		{"much later", 13, 20, Finished, "", 1},
		{"ended early", 2, 3, Finished, "", 0},
		{"killed", 13, 3, Running, "", 1}, // another problem reports it
		{"of a suite", 13, 20, Finished, "rampup", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := planFor(2, 4)
			p.Seconds, p.Suite = 20, c.suite
			parts, _ := randomRun(rand.New(rand.NewPCG(1, 2)), p)
			for i, r := range []*Runner{&parts[0].Runner, &parts[1].Runner} {
				r.EndedUS = r.StartedUS + 20e6
				if i == 1 {
					r.StartedUS += int64(c.start * 1e6)
					r.EndedUS = r.StartedUS + int64(c.length*1e6)
					r.State = c.state
				}
			}
			if c.suite != "" {
				p.Connections = 0
			}
			var m Merged
			m.Plan, m.Runners = p, []Runner{parts[0].Runner, parts[1].Runner}
			m.checkOverlap()
			if c.state != Finished {
				m.Problems = append(m.Problems, Merge(p, parts).EarlyEnds...)
			}
			require.Len(t, m.Problems, c.problems, "%q", m.Problems)
			if c.problems > 0 && c.state == Finished {
				require.Contains(t, m.Problems[0], "runner 1 on h1 and runner 2 on h2 ran at the same time for only 7 s of the planned 15 s")
			}
			if c.state != Finished {
				require.Contains(t, m.Problems[0], "did not finish: it left no final shard")
			}
		})
	}
}

// A shard of an earlier run with the same test id, or without one, must not replace a missing shard.
func TestStaleShardDoesNotReplaceAMissingOne(t *testing.T) {
	t.Parallel()
	stale := func(p plan.Plan) []*Shard {
		parts, _ := randomRun(rand.New(rand.NewPCG(1, 2)), p)
		parts[1].Runner.StartedUS -= 7200e6
		parts[1].Runner.EndedUS -= 7200e6
		return parts
	}
	p := planFor(3, 6)
	m := Merge(p, stale(p))
	require.Len(t, m.Problems, 1)
	require.Contains(t, m.Problems[0], "runner 2 on h2 ended at 2023-11-14 20:14:20 UTC, before runner 1 on h1 started")

	p.TestID = ""
	require.Len(t, Merge(p, stale(p)).Problems, 1)

	p.RunID = "this one"
	parts, _ := randomRun(rand.New(rand.NewPCG(1, 2)), p)
	for i, id := range []string{"this one", "this one", "that one"} {
		parts[i].Runner.RunID = id
	}
	m = Merge(p, parts)
	require.Len(t, m.Problems, 1)
	require.Contains(t, m.Problems[0], "the shard of runner 3 on h3 belongs to another run with the same test id")
}

func TestMergeExpectsANumberOfParts(t *testing.T) {
	t.Parallel()
	a, b := laptopShards("laptop-a-", 2, 4), laptopShards("laptop-b-", 1, 3)
	require.Empty(t, mergeWithoutPlan(a, b).Expect(2))
	require.Equal(t, []string{`"laptop-a-"`, `"laptop-b-"`}, mergeWithoutPlan(a, b).Prefixes())
	require.Equal(t, `the shards of 1 of 2 laptops are missing: 2 expected (--expect), 1 found (PREFIX "laptop-a-")`, mergeWithoutPlan(a).Expect(2), "two runners of one laptop must count as one laptop")
	require.Contains(t, mergeWithoutPlan(a, b).Expect(1), "the shards are from too many laptops: 1 expected (--expect), 2 found (PREFIX ")

	p := planFor(2, 4)
	shards, _ := randomRun(rand.New(rand.NewPCG(7, 8)), p)
	m := Merge(p, shards)
	require.Empty(t, m.Expect(2))
	require.Nil(t, m.Prefixes())
	require.Contains(t, m.Expect(3), "the shards of 1 of 3 runners are missing")
}
