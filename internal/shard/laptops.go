package shard

import (
	"cmp"
	"fmt"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// A Group is the runners that share one plan. A run that `soak run` started has one group. Laptops that
// ran k6 alone at the same time, each with a PREFIX of its own, have one each.
type Group struct {
	Plan    plan.Plan
	Runners int // shards that were found; those of a group follow each other in Merged.Runners

	declared int  // how many runners the plan says there are; 0 with k6 alone, which does not know
	refused  bool // a problem says why; nothing more is checked
}

// Alone merges the shards of k6 without `soak run`, for which there is no plan.json: each PREFIX is a group,
// which has to be complete by itself. Groups whose plans differ only in PREFIX and the numbers of connections
// and runners are one soak. No shard may be added afterwards.
func (g *Merger) Alone() *Merged {
	m := &g.m
	prefix := func(i int) string { return g.parts[i].plan.Prefix }
	g.sort(func(a, b int) int {
		return cmp.Or(cmp.Compare(prefix(a), prefix(b)), cmp.Compare(m.Runners[a].Index, m.Runners[b].Index))
	})
	for i := range m.Runners {
		if i == 0 || prefix(i) != prefix(i-1) {
			m.Groups = append(m.Groups, Group{Plan: g.parts[i].plan, declared: g.parts[i].plan.Runners})
		}
		m.Groups[len(m.Groups)-1].Runners++
	}
	m.planGroups()
	m.refuseTwins()
	m.checkRunners(g.parts)
	m.checkLaptops()
	g.finish()
	m.Problems = append(m.Problems, m.CheckConnections()...)
	if len(m.Groups) > 1 {
		for i := range m.Runners {
			m.Runners[i].Index = i + 1 // until here each group counted from 1
		}
	}
	return m
}

// planGroups finds out how many runners each group has to have, and adds up the plan of all.
func (m *Merged) planGroups() {
	from := 0
	for i := range m.Groups {
		g, first := &m.Groups[i], m.Runners[from]
		g.Plan.TestID, g.Plan.Runners = cmp.Or(first.TestID, g.Plan.TestID), max(g.Plan.Runners, g.Runners)
		from += g.Runners
		if i == 0 {
			m.Plan = g.Plan
			continue
		}
		m.Plan.Connections += g.Plan.Connections
		m.Plan.Runners += g.Plan.Runners
		m.Plan.Prefix += "," + g.Plan.Prefix
	}
}

// refuseTwins finds groups with the shards of two runs. Nothing more is checked of them.
func (m *Merged) refuseTwins() {
	from := 0
	for i := range m.Groups {
		g := &m.Groups[i]
		runners := m.Runners[from : from+g.Runners]
		from += g.Runners
		for n := 1; n < len(runners) && !g.refused; n++ {
			a, b := &runners[n-1], &runners[n]
			if a.Index != b.Index || a.Process == b.Process && a.Host == b.Host && a.PID == b.PID && a.StartedUS == b.StartedUS {
				continue
			}
			g.refused = true
			m.problem("two runs have the PREFIX %q: %s from %s on, and %s from %s on; give each laptop a PREFIX of its own, and remove the shard of a run that you repeated",
				g.Plan.Prefix, a.String(), stamp(a.Started()), b.String(), stamp(b.Started()))
		}
	}
}

// checkLaptops compares the plans of the groups.
func (m *Merged) checkLaptops() {
	for i := range m.Groups {
		b := m.Groups[i].Plan
		if diff := planDifference(m.Groups[0].Plan, b, 1, plan.Laptops); diff != "" {
			m.problem("%s ran another plan than %s: %s", b.Prefix, m.Groups[0].Plan.Prefix, diff)
		}
		for _, other := range m.Groups[:i] {
			a := other.Plan
			shared := b.DeviceID(0)
			if _, ok := a.Number(shared); !ok {
				shared = a.DeviceID(0)
				if _, ok := b.Number(shared); !ok {
					continue
				}
			}
			m.problem("the device ids of PREFIX %q with %d connections and of %q with %d overlap: %s is in both; choose prefixes of which none begins with another, such as laptop-a- and laptop-b-",
				a.Prefix, a.Connections, b.Prefix, b.Connections, shared)
		}
	}
}

// of names a group, and who a runner of it; a single group is not named.
func (m *Merged) of(g *Group) string {
	if len(m.Groups) < 2 {
		return ""
	}
	return " of " + g.Plan.Prefix
}

func (m *Merged) who(g *Group, index int) string { return fmt.Sprintf("runner %d%s", index, m.of(g)) }

// Laptop names the host and the group of a runner by its index in Runners; "" if there is one group.
func (m *Merged) Laptop(runner int) string {
	if len(m.Groups) < 2 {
		return ""
	}
	from := 0
	for _, g := range m.Groups {
		if from += g.Runners; runner < from {
			return cmp.Or(m.Runners[runner].Host, "a host without a name") + ", PREFIX " + g.Plan.Prefix
		}
	}
	return ""
}
