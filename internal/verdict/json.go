package verdict

import (
	"encoding/json"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Suite is the load that the script of a run declared, if the load is not in the plan.
type Suite struct {
	Name       string            `json:"name"`
	Profile    string            `json:"profile"`
	BackendURL string            `json:"backend_url"`
	Parameters map[string]string `json:"parameters"`
	Stages     []shard.Stage     `json:"stages"`
}

func declaredSuite(m *shard.Merged) *Suite {
	out := &Suite{Name: m.Plan.Suite, BackendURL: m.Plan.BackendURL}
	if s := m.Suite; s != nil { // nil: no runner left a shard
		out.Profile, out.Parameters, out.Stages = s.Profile, s.Parameters, s.Stages
	}
	return out
}

// MarshalJSON returns the verdict as JSON. If the script declared its load, a declaredPlan replaces the plan, and zero
// counts of streams and messages are omitted.
func (v *Verdict) MarshalJSON() ([]byte, error) {
	type plain Verdict
	if !v.Layout.Declared {
		return json.Marshal((*plain)(v))
	}
	var evidence *Basis
	var messages *Messages
	if v.Evidence.Kind != "" { // the run had event streams or responses
		evidence, messages = &v.Evidence, &v.Messages
	}
	return json.Marshal(struct {
		*plain
		Connections Connections  `json:"connections,omitzero"`
		Messages    *Messages    `json:"messages,omitempty"`
		Evidence    *Basis       `json:"evidence,omitempty"`
		LatenessMS  Quantiles    `json:"lateness_ms,omitzero"`
		ConnectMS   Quantiles    `json:"connect_ms,omitzero"`
		Server      Server       `json:"server,omitzero"`
		Plan        declaredPlan `json:"plan"`
	}{(*plain)(v), v.Connections, messages, evidence, v.LatenessMS, v.ConnectMS, v.Server, declaredPlan{
		Suite: v.Plan.Suite, Profile: v.Suite.Profile, Parameters: v.Suite.Parameters, Runners: v.Plan.Runners, BackendURL: v.Plan.BackendURL, Connections: v.Plan.Connections,
		Seconds: v.Plan.Seconds, NoopInterval: v.Plan.NoopInterval, Service: v.Plan.Service, Topics: v.Plan.Topics, PublishRate: v.Plan.PublishRate,
	}})
}

// A declaredPlan is the part of a plan that applies to a run whose script declared its load. Runs with the same
// declaredPlan can be compared.
type declaredPlan struct {
	Suite        string            `json:"suite"`
	Profile      string            `json:"profile"`
	Parameters   map[string]string `json:"parameters,omitempty"`
	Runners      int               `json:"runners"`
	BackendURL   string            `json:"backend_url"`
	Connections  int               `json:"connections,omitempty"`
	Seconds      int               `json:"seconds,omitempty"`
	NoopInterval float64           `json:"noop_interval_s,omitempty"`
	Service      string            `json:"service,omitempty"`
	Topics       int               `json:"topics,omitempty"`
	PublishRate  float64           `json:"publish_rate,omitempty"`
}
