package shard

import "github.com/sse-soak/sse-soak/internal/plan"

// adoptPlan takes over what the scripts planned for their streams, which is not known before they are loaded. All runners have to have planned the same.
func (m *Merged) adoptPlan(parts []part) {
	for i, p := range parts {
		if diff := planDifference(parts[0].plan, p.plan, m.Runners[i].Index, plan.Parts); diff != "" {
			m.problem("runner %d planned other streams than runner %d: %s", m.Runners[i].Index, m.Runners[0].Index, diff)
		}
	}
	if len(parts) == 0 || parts[0].plan.Connections == 0 {
		return // no streams
	}
	of := m.Plan
	m.Plan = parts[0].plan
	m.Plan.Suite, m.Plan.TestID, m.Plan.RunID, m.Plan.Runners, m.Plan.BackendURL = of.Suite, of.TestID, of.RunID, of.Runners, of.BackendURL
	m.Groups[0].Plan = m.Plan
}
