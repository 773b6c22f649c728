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

// How suites of requests name what they measure: one metric for every request, split by these tags.
const (
	RequestDuration = "request_duration"   // a trend in ms: from asking for a connection to the last byte
	FirstByte       = "request_first_byte" // the same to the first byte of the answer
	Waited          = "request_waited"     // of an open loop: for a connection, of those requests for which none was free
	Connected       = "request_connected"  // of the same requests: the duration without that wait
	AnsweredLate    = "request_late"       // of a stage with a fixed length: how long after its end a good answer arrived
	Unrequested     = "unrequested_bytes"  // connections on which a server sent bytes after its answer that no request asked for
	TagStage        = "scenario"
	TagEndpoint     = "endpoint"
	TagServer       = "server" // which of several, where they say so
	TagWaited       = "waited" // "yes" for requests that have a sample of Waited
	TagCode         = "code"   // CodeOK, CodeWrong, CodeTruncated, CodeStatus and the status, or CodeNet and k6's number of the error
	CodeOK          = "ok"
	CodeWrong       = "wrong"     // an answer with status 200 and wrong content
	CodeTruncated   = "truncated" // an answer with status 200 whose connection ended before its body
	CodeStatus      = "status-"   // an answer of another status: status-503
	CodeNet         = "net-"      // no answer: net-1220 is a reset
	Dropped         = "dropped_iterations"
	Other           = "(other)" // value of the first tag where a script made too many combinations
)

// WakeUps is how often an answer wakes the generator up: the connection, the request, the answer's head,
// its body, the script.
const WakeUps = 5

// A Suite is what a script declares of itself, where the plan does not say it: what it does, in
// which stages, and by which tags its metrics are kept apart. All runners declare the same. The tag js is the
// name in a script.
type Suite struct {
	Name       string            `json:"name" js:"name"`
	Profile    string            `json:"profile" js:"profile"`
	SplitBy    []string          `json:"split_by,omitempty" js:"splitBy"`
	Parameters map[string]string `json:"parameters,omitempty" js:"parameters"` // settings as the script understood them
	Stages     []Stage           `json:"stages" js:"stages"`
}

// A Stage is a part of a suite with a load of its own. Numbers of 0 do not apply.
type Stage struct {
	Name        string  `json:"name" js:"name"`   // of its k6 scenario
	Title       string  `json:"title" js:"title"` // for people: "200 requests/s"
	Kind        string  `json:"kind" js:"kind"`   // what the suite uses it for: "load", "warmup", "health" …
	Target      string  `json:"target,omitempty" js:"target"`
	Start       float64 `json:"start_s" js:"start"`       // after the start of the run
	Seconds     float64 `json:"seconds" js:"seconds"`     // planned, or the most that it may take
	Rate        float64 `json:"rate,omitempty" js:"rate"` // arrivals per second over all runners
	Concurrency int     `json:"concurrency,omitempty" js:"concurrency"`
	Requests    int     `json:"requests,omitempty" js:"requests"`
	Connections int     `json:"max_vus,omitempty" js:"connections"` // of an open model at most, over all runners; once virtual users
	Patience    float64 `json:"patience_s,omitempty" js:"patience"` // for which a request of an open model waits for a connection before it is never made
}

// A Second is about one second of a runner's life, finer than a bucket of the series: stages of a
// suite may be over in few.
type Second struct {
	FromUS     int64   `json:"from_unix_us"`
	ToUS       int64   `json:"to_unix_us"`
	CPUSeconds float64 `json:"cpu_seconds"`
	RunDelayMS int64   `json:"run_delay_ms"`        // threads ready to run, waiting for a core, summed
	StallMS    int64   `json:"stall_ms"`            // longest time by which the process woke up late
	WaitMS     int64   `json:"wait_ms"`             // longest that anything in it waited to run; at least StallMS
	RSS        uint64  `json:"rss_bytes,omitempty"` // at its end
}

// Stage finds a stage by its name.
func (s *Suite) Stage(name string) (Stage, bool) {
	i := slices.IndexFunc(s.Stages, func(st Stage) bool { return st.Name == name })
	if i < 0 {
		return Stage{}, false
	}
	return s.Stages[i], true
}

// name is that of the suite, "" of none.
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

// checkSuites compares the kind of run that each script declared with the plan.
func (m *Merged) checkSuites(parts []part) {
	for i, p := range parts {
		if p.declared.name() != m.Plan.Suite {
			m.problem("runner %d ran %s, planned was %q", m.Runners[i].Index, p.declared, m.Plan.Suite)
		}
	}
}

// checkDeclared compares what the scripts declared with each other.
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

// key tells the series of a metric apart.
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

// isOther says that a metric has the rest of the combinations of tags.
func (s *Suite) isOther(n Metric) bool {
	return s != nil && len(s.SplitBy) > 0 && n.Tags[s.SplitBy[0]] == Other
}

// adoptPlan takes over what the scripts planned for their streams, which is not known before they are
// loaded. All runners have to have planned the same.
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
