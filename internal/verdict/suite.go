package verdict

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Suite is what a run of another kind than the soak was.
type Suite struct {
	Name       string            `json:"name"`
	Profile    string            `json:"profile"`
	BackendURL string            `json:"backend_url"`
	Parameters map[string]string `json:"parameters"`
	Stages     []shard.Stage     `json:"stages"`
}

// A Fact is one line of what a suite found, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Table is a section of the report. Cells are text as people read it; a column whose cells are
// numbers is set to the right by whoever renders it.
type Table struct {
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"` // how to read it, in a sentence
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Numeric tells whether a column holds numbers, or nothing.
func (t *Table) Numeric(column int) bool {
	for _, row := range t.Rows {
		first, _ := utf8.DecodeRuneInString(row[column])
		if row[column] != "" && !strings.ContainsRune("0123456789+-–", first) {
			return false
		}
	}
	return len(t.Rows) > 0
}

// A Figure is one number of a suite that can be compared with that of another run.
type Figure struct {
	Name           string  `json:"name"`
	Unit           string  `json:"unit,omitempty"` // "ms", "requests/s", "%", "": a count
	Value          float64 `json:"value"`
	HigherIsBetter bool    `json:"higher_is_better,omitempty"`
}

// An Assessment is what a suite concludes from its figures; it is a pure function of them.
type Assessment struct {
	Criteria []Judged
	Facts    []Fact
	Tables   []Table
	Figures  []Figure
	Passed   string // what a pass has shown, in a sentence
	// Streams are the counts of the suite's event streams, nil if it opened none.
	Streams *Streams
}

// Judged is a criterion and, where it is not met, the sentences that say why.
type Judged struct {
	Criterion
	Reasons []string
}

// JudgeSuite adds to an assessment the criteria for every kind of run: all runners have to be observed,
// and the target has to stay up.
func JudgeSuite(m *shard.Merged, facts Facts, a Assessment) *Verdict {
	j := &judge{m: m, facts: facts, v: &Verdict{
		Schema: 1, TestID: m.Plan.TestID, Plan: Planned{m.Plan}, Resources: facts.Resources, Warnings: facts.Warnings,
		Facts: a.Facts, Tables: a.Tables, Figures: a.Figures, Suite: &Suite{Name: m.Plan.Suite, BackendURL: m.Plan.BackendURL},
	}}
	if s := m.Suite; s != nil {
		j.v.Suite.Profile, j.v.Suite.Parameters, j.v.Suite.Stages = s.Profile, s.Parameters, s.Stages
	}
	if a.Streams != nil {
		a.Streams.fill(j.v)
	} else {
		j.v.Runners = make([]Runner, len(m.Runners))
	}
	j.runners()
	j.generatorTimes()
	j.completeCriterion()
	j.addAll(a.Criteria)
	if len(facts.Failures) > 0 {
		j.add(Criterion{
			Name: "the target stayed up", Limit: "no restart", Actual: facts.Failures[0],
			Why: "a restart cuts every client off",
		}, facts.Failures...)
	}
	j.outcome()
	if a.Streams != nil {
		j.untested()
	}
	if len(j.v.Reasons) == 0 {
		j.v.Reasons = []string{a.Passed}
	}
	return j.v
}

// MarshalJSON leaves out of a suite's verdict what only a soak has.
func (v *Verdict) MarshalJSON() ([]byte, error) {
	type plain Verdict
	if v.Suite == nil {
		return json.Marshal((*plain)(v))
	}
	var evidence *Evidence
	if v.Evidence.By != "" { // it held streams
		evidence = &v.Evidence
	}
	return json.Marshal(struct {
		*plain
		Connections Connections `json:"connections,omitzero"`
		Noops       Noops       `json:"noops,omitzero"`
		Evidence    *Evidence   `json:"evidence,omitempty"`
		Interval    Interval    `json:"interval_s,omitzero"`
		LatenessMS  Quantiles   `json:"lateness_ms,omitzero"`
		ConnectMS   Quantiles   `json:"connect_ms,omitzero"`
		Server      Server      `json:"server,omitzero"`
		Plan        suitePlan   `json:"plan"`
	}{(*plain)(v), v.Connections, v.Noops, evidence, v.Interval, v.LatenessMS, v.ConnectMS, v.Server, suitePlan{
		Suite: v.Plan.Suite, Profile: v.Suite.Profile, Parameters: v.Suite.Parameters, Runners: v.Plan.Runners, BackendURL: v.Plan.BackendURL, Connections: v.Plan.Connections,
		Seconds: v.Plan.Seconds, NoopInterval: v.Plan.NoopInterval,
	}})
}

// suitePlan is the part of a plan that suites have. Runs with the same suitePlan can be compared.
type suitePlan struct {
	Suite        string            `json:"suite"`
	Profile      string            `json:"profile"`
	Parameters   map[string]string `json:"parameters,omitempty"`
	Runners      int               `json:"runners"`
	BackendURL   string            `json:"backend_url"`
	Connections  int               `json:"connections,omitempty"`
	Seconds      int               `json:"seconds,omitempty"`
	NoopInterval float64           `json:"noop_interval_s,omitempty"`
}

func (j *judge) completeCriterion() {
	problems := append(append([]string(nil), j.m.Problems...), j.facts.Problems...)
	what := "every runner and connection"
	if j.m.Plan.Suite != "" {
		what = "every runner"
	}
	j.add(Criterion{
		Name: "complete account", Limit: what, Actual: first(problems, "complete"),
		Pass: len(problems) == 0, Invalid: true,
		Why: "what was not observed proves nothing",
	}, problems...)
}

// Ratio writes n of total with a percentage, for people.
func Ratio(n, total int64) string {
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.2f %%)", n, 100*float64(n)/float64(total))
}
