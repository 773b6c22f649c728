package shard

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// Metrics, tags and codes of the suites that make requests.
const (
	RequestDuration  = "request_duration"   // a trend in ms: from asking for a connection to the last byte
	FirstByte        = "request_first_byte" // the same to the first byte of the answer
	Waited           = "request_waited"     // of an open loop: for a connection, of those requests for which none was free
	Connected        = "request_connected"  // of the same requests: the duration without that wait
	AnsweredLate     = "request_late"       // of a stage with a fixed length: time from its end to a good response
	Unrequested      = "unrequested_bytes"  // connections on which a server sent bytes after its response
	TagStage         = "scenario"
	TagEndpoint      = "endpoint"
	TagServer        = "server" // which of several, if they have names
	TagWaited        = "waited" // "yes" for requests that have a sample of Waited
	TagCode          = "code"   // CodeOK, CodeWrongContent, CodeTruncated, CodeStatus and the status, or CodeNet and k6's number of the error
	CodeOK           = "ok"
	CodeWrongContent = "wrong"     // an answer with status 200 and wrong content
	CodeTruncated    = "truncated" // an answer with status 200 whose connection ended before its body
	CodeStatus       = "status-"   // an answer of another status: status-503
	CodeNet          = "net-"      // no answer: net-1220 is a reset
	Dropped          = "dropped_iterations"
	Other            = "(other)" // value of the first tag if a script made too many combinations
)

// WakeUps is the number of wake-ups of the generator per request: connection, request, head and body of the response, script.
const WakeUps = 5

// A Suite is the declaration of a script: its stages, and the tags by which its metrics are split. All runners declare the same. The
// tag js is the name in a script.
type Suite struct {
	Name       string            `json:"name" js:"name"`
	Profile    string            `json:"profile" js:"profile"`
	SplitBy    []string          `json:"split_by,omitempty" js:"splitBy"`
	Parameters map[string]string `json:"parameters,omitempty" js:"parameters"` // settings as the script parsed them
	Stages     []Stage           `json:"stages" js:"stages"`
}

// A Stage is a part of a suite with its own load. Numbers of 0 do not apply.
type Stage struct {
	Name        string  `json:"name" js:"name"`   // of its k6 scenario
	Title       string  `json:"title" js:"title"` // for people: "200 requests/s"
	Kind        string  `json:"kind" js:"kind"`   // its use in the suite: "load", "warmup", "health" …
	Target      string  `json:"target,omitempty" js:"target"`
	Start       float64 `json:"start_s" js:"start"`       // after the start of the run
	Seconds     float64 `json:"seconds" js:"seconds"`     // planned, or the maximum
	Rate        float64 `json:"rate,omitempty" js:"rate"` // arrivals per second over all runners
	Concurrency int     `json:"concurrency,omitempty" js:"concurrency"`
	Requests    int     `json:"requests,omitempty" js:"requests"`
	Connections int     `json:"max_vus,omitempty" js:"connections"` // maximum of an open model over all runners
	Patience    float64 `json:"patience_s,omitempty" js:"patience"` // time that a request of an open model waits for a connection before it is dropped
}

// A Second is about one second of a runner. It is finer than a bucket of the series, because stages of a suite may be short.
type Second struct {
	FromUS     int64   `json:"from_unix_us"`
	ToUS       int64   `json:"to_unix_us"`
	CPUSeconds float64 `json:"cpu_seconds"`
	RunDelayMS int64   `json:"run_delay_ms"`        // threads ready to run, waiting for a core, summed
	StallMS    int64   `json:"stall_ms"`            // longest delay of a wake-up of the process
	WaitMS     int64   `json:"wait_ms"`             // longest time that a goroutine waited to run; at least StallMS
	RSS        uint64  `json:"rss_bytes,omitempty"` // at its end
}

// Stage returns a stage by its name.
func (s *Suite) Stage(name string) (Stage, bool) {
	i := slices.IndexFunc(s.Stages, func(st Stage) bool { return st.Name == name })
	if i < 0 {
		return Stage{}, false
	}
	return s.Stages[i], true
}

// name returns the name of the suite; "": none.
func (s *Suite) name() string {
	if s == nil {
		return ""
	}
	return s.Name
}

func (s *Suite) String() string {
	if s == nil {
		return "no suite"
	}
	return fmt.Sprintf("the suite %q", s.Name)
}

func partOf(s *Shard) part {
	return part{s.Plan, s.Suite, s.Service, slices.ContainsFunc(s.Metrics, s.Suite.isOther)}
}

// checkSuites compares the suite that each script declared with the plan.
func (m *Merged) checkSuites(parts []part) {
	for i, p := range parts {
		if p.declared.name() != m.Plan.Suite {
			m.problem("runner %d ran %s, planned was %q", m.Runners[i].Index, p.declared, m.Plan.Suite)
		}
	}
}

// checkDeclared compares the declarations of the scripts.
func (m *Merged) checkDeclared(parts []part) {
	for i, p := range parts {
		index := m.Runners[i].Index
		m.Suite = cmp.Or(m.Suite, p.declared)
		if p.declared.name() == m.Plan.Suite && !reflect.DeepEqual(m.Suite, p.declared) {
			m.problem("runner %d ran the suite with other settings than runner %d", index, m.Runners[0].Index)
		}
		if p.crowded {
			m.problem("runner %d saw too many combinations of tags, not all are kept apart: tag by what is few", index)
		}
	}
}

// key identifies a series of a metric.
func (n *Metric) key() string {
	var b strings.Builder
	b.WriteString(n.Name)
	for _, tag := range slices.Sorted(maps.Keys(n.Tags)) {
		b.WriteByte(0)
		b.WriteString(tag)
		b.WriteByte(0)
		b.WriteString(n.Tags[tag])
	}
	return b.String()
}

// isOther reports whether a metric has the rest of the combinations of tags.
func (s *Suite) isOther(n Metric) bool {
	return s != nil && len(s.SplitBy) > 0 && n.Tags[s.SplitBy[0]] == Other
}

// adoptPlan adopts the plan of the scripts for their streams, which is not known before the scripts are loaded. All runners must have
// the same one.
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
	m.groups[0].plan = m.Plan
}
