package shard

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// A group has the runners with one plan: all runners of `soak run`, or the runners of one PREFIX if laptops ran k6
// alone.
type group struct {
	plan           plan.Plan
	first, runners int  // index of the first runner in Merged.Runners, and number of runners
	plannedRunners int  // number of runners in the plan; 1 if k6 ran alone without RUNNERS
	hasTwoRuns     bool // the shards are from two runs; a problem reports that, and the group is not checked further
}

func (m *Merged) runnersOf(g *group) []Runner { return m.Runners[g.first:][:g.runners] }

// groupOf returns the group of a runner by its index in Runners, or nil if it is in no group.
func (m *Merged) groupOf(runner int) *group {
	for i := range m.groups {
		if g := &m.groups[i]; runner >= g.first && runner < g.first+g.runners {
			return g
		}
	}
	return nil
}

// MergeWithoutPlan merges shards that k6 wrote without `soak run`, so there is no plan.json. Each PREFIX is a group,
// which must be complete. Groups whose plans differ only in PREFIX and the numbers of clients and runners form
// one run. No shard may be added afterward.
func (g *Merger) MergeWithoutPlan() *Merged {
	m := &g.m
	m.withoutPlan = true
	prefix := func(i int) string { return g.parts[i].plan.Prefix }
	g.sort(func(a, b int) int {
		return cmp.Or(cmp.Compare(prefix(a), prefix(b)), cmp.Compare(m.Runners[a].Index, m.Runners[b].Index))
	})
	for i := range m.Runners {
		if i == 0 || prefix(i) != prefix(i-1) {
			m.groups = append(m.groups, group{plan: g.parts[i].plan, first: i, plannedRunners: g.parts[i].plan.Runners})
		}
		m.groups[len(m.groups)-1].runners++
	}
	m.planGroups()
	m.checkDuplicateRuns()
	m.checkRunners(g.parts)
	m.checkLaptops()
	g.finish()
	m.Problems = append(m.Problems, m.CheckConnections()...)
	if len(m.groups) > 1 {
		for i := range m.Runners {
			m.Runners[i].Index = i + 1 // the numbers of each group start at 1
		}
	}
	return m
}

// Prefixes returns the quoted prefixes of laptops that ran k6 alone, or nil if the run has a plan.
func (m *Merged) Prefixes() (out []string) {
	if !m.withoutPlan {
		return nil
	}
	for _, g := range m.groups {
		out = append(out, fmt.Sprintf("%q", g.plan.Prefix))
	}
	return out
}

// Expect returns a problem if the shards are not from n laptops, or not from n runners if the run has a plan. Otherwise
// it returns "".
func (m *Merged) Expect(n int) string {
	noun, found, prefixes := "runner", len(m.Runners), ""
	if m.withoutPlan {
		noun, found = "laptop", len(m.groups)
		if found > 0 {
			prefixes = " (PREFIX " + strings.Join(m.Prefixes(), ", ") + ")"
		}
	}
	switch {
	case found < n:
		return fmt.Sprintf("the shards of %s of %s are missing: %d expected (--expect), %d found%s", format.Thousands(n-found), format.Count(n, noun), n, found, prefixes)
	case found > n:
		return fmt.Sprintf("the shards are from too many %ss: %d expected (--expect), %d found%s", noun, n, found, prefixes)
	}
	return ""
}

// planGroups completes the plans of the groups. The plan of the run becomes their sum.
func (m *Merged) planGroups() {
	for i := range m.groups {
		g := &m.groups[i]
		g.plan.TestID, g.plan.Runners = cmp.Or(m.Runners[g.first].TestID, g.plan.TestID), max(g.plan.Runners, g.runners)
		if i == 0 {
			m.Plan = g.plan
			continue
		}
		m.Plan.Connections += g.plan.Connections
		m.Plan.Runners += g.plan.Runners
		m.Plan.Prefix += "," + g.plan.Prefix
	}
}

func (m *Merged) checkDuplicateRuns() {
	for i := range m.groups {
		g := &m.groups[i]
		runners := m.runnersOf(g)
		for n := 1; n < len(runners) && !g.hasTwoRuns; n++ {
			a, b := &runners[n-1], &runners[n]
			if a.Index != b.Index || a.Process == b.Process && a.Host == b.Host && a.PID == b.PID && a.StartedUS == b.StartedUS {
				continue
			}
			g.hasTwoRuns = true
			m.problem("two runs have the PREFIX %q: %s from %s on, and %s from %s on; give each laptop its own PREFIX, and remove the shards of a repeated run",
				g.plan.Prefix, a.String(), format.Time(a.Started()), b.String(), format.Time(b.Started()))
		}
	}
}

func (m *Merged) checkLaptops() {
	for i := range m.groups {
		b := m.groups[i].plan
		if diff := planDifference(m.groups[0].plan, b, 1, plan.Laptops); diff != "" {
			m.problem("the laptop with PREFIX %q ran a different plan from the one with %q: %s", b.Prefix, m.groups[0].plan.Prefix, diff)
		}
		for _, other := range m.groups[:i] {
			a := other.plan
			shared := b.ClientID(0)
			if _, ok := a.Number(shared); !ok {
				shared = a.ClientID(0)
				if _, ok := b.Number(shared); !ok {
					continue
				}
			}
			m.problem("the client ids of PREFIX %q with %s and of %q with %d overlap: %s is in both; choose prefixes that do not begin with each other, such as laptop-a- and laptop-b-",
				a.Prefix, format.Plural(a.Connections, "client", "clients"), b.Prefix, b.Connections, shared)
		}
	}
}

// groupName returns the name of a group in a problem, or "" for a single group.
func (m *Merged) groupName(g *group) string {
	if len(m.groups) < 2 {
		return ""
	}
	return " of " + cmp.Or(g.plan.Prefix, `PREFIX ""`)
}

func (m *Merged) runnerName(g *group, index int) string {
	return fmt.Sprintf("runner %d%s", index, m.groupName(g))
}

// nameAt returns the name of a runner with its group and its host, by its index in Runners.
func (m *Merged) nameAt(i int) string {
	return m.runnerName(m.groupOf(i), m.Runners[i].Index) + m.Runners[i].onHost()
}

// Laptop returns the host and the group of a runner by its index in Runners, or "" if there is one group.
func (m *Merged) Laptop(runner int) string {
	if len(m.groups) < 2 {
		return ""
	}
	if g := m.groupOf(runner); g != nil {
		return cmp.Or(m.Runners[runner].Host, "a host without a name") + ", PREFIX " + cmp.Or(g.plan.Prefix, `""`)
	}
	return ""
}
