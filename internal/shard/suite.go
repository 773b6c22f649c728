package shard

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Metrics, tags and codes of the suites that make requests.
const (
	RequestDuration     = "request_duration"   // trend in ms, from the request for a connection to the last byte
	FirstByte           = "request_first_byte" // trend in ms, to the first byte of the response
	ConnectionWait      = "request_waited"     // of an open model: wait of a request for a free connection
	DurationWithoutWait = "request_connected"  // of the same requests: duration without that wait
	ResponseDelay       = "request_late"       // of a stage with a fixed length: time from its end to a good response
	UnrequestedBytes    = "unrequested_bytes"  // number of connections on which a server sent bytes after its response
	TagStage            = "scenario"           // name of the stage
	TagEndpoint         = "endpoint"           // name of the endpoint
	TagServer           = "server"             // name of the server, if there are several
	TagWaited           = "waited"             // "yes" for requests with a sample of ConnectionWait
	TagCode             = "code"               // one of the following codes
	CodeOK              = "ok"                 // a good response
	CodeWrongContent    = "wrong"              // a response with the expected status and wrong content
	CodeTruncated       = "truncated"          // a response with the expected status and an incomplete body
	CodeStatus          = "status-"            // prefix of the status of any other response: status-503
	CodeNet             = "net-"               // prefix of k6's error code without a response: net-1220 is a reset
	CodeNoPort          = "no_ports"           // the machine had no port left, so the request was not sent
	CodeNoDescriptor    = "no_descriptors"     // the runner had no descriptor left, so the request was not sent
	CodeNoIPv6          = "no_ipv6"            // the address is an IPv6 address, and the machine has none
	DroppedIterations   = "dropped_iterations" // k6's metric of iterations that it could not start
	Other               = "(other)"            // first tag of combinations, or name of servers, beyond a limit
)

// LackReasons maps the code of a resource that the generator lacked to the reason of the failed attempt.
var LackReasons = map[string]string{CodeNoPort: ledger.ReasonNoPort, CodeNoDescriptor: ledger.ReasonNoDescriptor, CodeNoIPv6: ledger.ReasonNoIPv6}

// WakeUps is the number of wake-ups of the generator per request: connection, request, header, body and script.
const WakeUps = 5

// A Suite is the declaration of a script: its stages, and the tags by which its metrics are split. All runners declare
// the same suite. The struct tag js has the name of a field in the script.
type Suite struct {
	Name       string            `json:"name" js:"name"`
	Profile    string            `json:"profile" js:"profile"`
	SplitBy    []string          `json:"split_by,omitempty" js:"splitBy"`
	Parameters map[string]string `json:"parameters,omitempty" js:"parameters"` // settings as parsed by the script
	Stages     []Stage           `json:"stages" js:"stages"`
}

// A Stage is a part of a suite with its own load. A number is 0 if it does not apply to the stage.
type Stage struct {
	Name        string  `json:"name" js:"name"`   // name of the k6 scenario
	Title       string  `json:"title" js:"title"` // for display: "200 requests/s"
	Kind        string  `json:"kind" js:"kind"`   // purpose in the suite, such as "load", "warmup" or "health"
	Target      string  `json:"target,omitempty" js:"target"`
	Start       float64 `json:"start_s" js:"start"`       // after the start of the run
	Seconds     float64 `json:"seconds" js:"seconds"`     // planned or maximum length
	Rate        float64 `json:"rate,omitempty" js:"rate"` // arrivals per second over all runners
	Concurrency int     `json:"concurrency,omitempty" js:"concurrency"`
	Requests    int     `json:"requests,omitempty" js:"requests"`
	Connections int     `json:"max_vus,omitempty" js:"connections"` // maximum of an open model over all runners
	Patience    float64 `json:"patience_s,omitempty" js:"patience"` // maximum wait for a connection in an open model
}

// A Second has the resources of a runner in about one second, because stages may be shorter than a bucket.
type Second struct {
	FromUS     int64   `json:"from_unix_us"`
	ToUS       int64   `json:"to_unix_us"`
	CPUSeconds float64 `json:"cpu_seconds"`
	RunDelayMS int64   `json:"run_delay_ms"`        // sum over the threads of the time that they waited for a core
	StallMS    int64   `json:"stall_ms"`            // longest delay of a wake-up of the process
	WaitMS     int64   `json:"wait_ms"`             // longest time that a goroutine waited to run; at least StallMS
	RSS        uint64  `json:"rss_bytes,omitempty"` // at its end
}

func (s *Suite) name() string {
	if s == nil {
		return ""
	}
	return s.Name
}

func describeSuite(name string) string {
	if name == "" {
		return "no suite"
	}
	return fmt.Sprintf("the suite %q", name)
}

func (m *Merged) checkSuites(parts []part) {
	for i, p := range parts {
		if p.suite.name() != m.Plan.Suite {
			m.problem("runner %d ran %s, but the plan has %s", m.Runners[i].Index, describeSuite(p.suite.name()), describeSuite(m.Plan.Suite))
		}
	}
}

// checkDeclarations sets the suite of the run. It reports different declarations, and too many combinations of tags.
func (m *Merged) checkDeclarations(parts []part) {
	for i, p := range parts {
		index := m.Runners[i].Index
		m.Suite = cmp.Or(m.Suite, p.suite)
		if p.suite.name() == m.Plan.Suite && !reflect.DeepEqual(m.Suite, p.suite) {
			m.problem("runner %d ran the suite with different settings from runner %d; use the same settings", index, m.Runners[0].Index)
		}
		if p.overflow {
			m.problem("runner %d has too many combinations of tags to count each separately; use tags with few values", index)
		}
	}
}

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

// isOther reports whether a metric is the sum of the combinations of tags beyond the limit.
func (s *Suite) isOther(n Metric) bool {
	return s != nil && len(s.SplitBy) > 0 && n.Tags[s.SplitBy[0]] == Other
}

// adoptPlan adopts the plan of the scripts, which is unknown before the scripts load and must be the same for all
// runners.
func (m *Merged) adoptPlan(parts []part) {
	for i, p := range parts {
		if diff := planDifference(parts[0].plan, p.plan, m.Runners[i].Index, plan.Parts); diff != "" {
			m.problem("runner %d has a different plan of streams from runner %d: %s", m.Runners[i].Index, m.Runners[0].Index, diff)
		}
	}
	if len(parts) == 0 || parts[0].plan.Connections == 0 {
		return // no streams
	}
	base := m.Plan
	m.Plan = parts[0].plan
	m.Plan.Suite, m.Plan.TestID, m.Plan.RunID, m.Plan.Runners, m.Plan.BackendURL = base.Suite, base.TestID, base.RunID, base.Runners, base.BackendURL
	m.groups[0].plan = m.Plan
}
