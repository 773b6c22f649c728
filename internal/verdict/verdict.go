// Package verdict decides from the records of a run whether it is a pass, a fail or invalid. It depends only on the
// files of the run, so the decision can be repeated at any time.
package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An Outcome is pass, fail or invalid.
type Outcome string

// The outcomes. Invalid means that the run proves neither a pass nor a fail.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Invalid Outcome = "invalid"
)

// ExitCode returns the exit code of the command line: 0 for a pass, 1 for a fail, 2 for invalid.
func (o Outcome) ExitCode() int {
	switch o {
	case Pass:
		return 0
	case Fail:
		return 1
	case Invalid:
	}
	return 2
}

// Schema is the version of the format of verdict.json. Readers reject any other version.
const Schema = 3

// CheckSchema returns an error for a verdict.json of a different version.
func CheckSchema(schema int) error {
	if schema != Schema {
		return fmt.Errorf("schema must be %d, got %d", Schema, schema)
	}
	return nil
}

// A Verdict is the content of verdict.json. Within one version of the schema, fields are only ever added.
type Verdict struct {
	Schema  int     `json:"schema"`
	TestID  string  `json:"testid"`
	Verdict Outcome `json:"verdict"`
	// MessagesChecked reports whether any message or chunk was checked; nil for a run that has neither event streams
	// nor responses that end by themselves.
	MessagesChecked *bool `json:"messages_checked,omitempty"`
	// Expect is the number of runners, or of machines that ran only k6, that soak merge --expect requires; 0: any
	// number.
	Expect    int             `json:"expect,omitempty"`
	Sentence  string          `json:"summary"` // the verdict in one sentence
	Reasons   []string        `json:"reasons"`
	Plan      plan.Plan       `json:"plan"`
	Suite     *Suite          `json:"suite,omitempty"` // the load that the script declared, if the plan does not have it
	Facts     []Fact          `json:"facts,omitempty"`
	Tables    []Table         `json:"tables,omitempty"`
	Metrics   []Metric        `json:"figures,omitempty"`
	Responses *Responses      `json:"responses,omitempty"` // responses that end by themselves
	Counts                    // counts of the event streams
	Generator Generator       `json:"generator"`
	Resources Resources       `json:"resources"`
	Checks    []Check         `json:"checks"`
	Actions   []Action        `json:"actions,omitempty"` // actions of --at, in their order
	Failures  []TargetFailure `json:"target_failures,omitempty"`
	FindingSummary
	ScriptChecks []shard.ScriptCheck `json:"script_checks"`
	Runners      []Runner            `json:"runners"`
	Machines     []MachineReport     `json:"machines,omitempty"`
	StartedUnix  float64             `json:"started_unix_s"`
	EndedUnix    float64             `json:"ended_unix_s"`
	Warnings     []string            `json:"warnings,omitempty"`
	RunInfo      *RunInfo            `json:"run_info,omitempty"`
	OpenTime                         // zero if the suite does not plan streams for the whole run
	Windows      []Window            `json:"windows,omitempty"`         // empty if the run was not longer than one window
	Watched      *WatchedTime        `json:"watched_seconds,omitempty"` // nil: the whole run was watched, or the share is unknown

	Layout  Layout   `json:"-"`
	NoData  bool     `json:"-"` // no runner stored data after its start
	streams *Streams // see Records
}

// Connections counts clients, not streams: a client that reconnects counts once, except in Reconnected.
type Connections struct {
	Planned   int `json:"planned"`
	Opened    int `json:"opened"`
	Completed int `json:"completed"` // the last stream ended as planned, or the last outage was not too long
	// Reconnecting counts the completed clients that had no stream when the run requested the end of the streams.
	Reconnecting int `json:"reconnecting,omitempty"`

	Refused     int `json:"refused"`
	Dropped     int `json:"dropped"`
	Unfinished  int `json:"unfinished"`          // not ended by the server as requested, or open when the run was stopped
	Unobserved  int `json:"unobserved"`          // in no shard
	Unwatched   int `json:"unwatched,omitempty"` // open, connecting or reconnecting when their runner ended early
	Reconnected int `json:"reconnected"`         // reconnects of all clients
}

// Quantiles are quantiles of a merged histogram, in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Latency is the time from when a message was sent, according to its timestamp, until it was received.
type Latency struct {
	Quantiles
	Above string `json:"above"` // AboveSend or AboveFastest
}

// The zero point of a latency: the send time if sender and runners share one clock, otherwise the fastest message of
// each runner.
const (
	AboveSend    = "send"
	AboveFastest = "fastest"
)

// Reconnects sums up the outages that ended with a reconnect, from a lost stream to the headers of the next one, in
// milliseconds. Count and Max include all outages; the other quantiles include only the first 16 of each client.
type Reconnects struct {
	Quantiles
	Count int `json:"count"`
}

// A Generator has the CPU usage and the delays of the runners. CPUSeconds and RunDelaySeconds are sums.
type Generator struct {
	CPUSeconds      float64 `json:"cpu_seconds"`
	RunDelaySeconds float64 `json:"run_delay_seconds"` // time in which threads were ready to run and waited for a core
	StallMaxMS      float64 `json:"stall_max_ms"`      // maximum delay with which a runner woke up
	GCPauseMaxMS    float64 `json:"gc_pause_max_ms"`
	// Saturated reports whether the check generator.kept-up is not met, or runners waited too long for a CPU.
	Saturated bool `json:"saturated"`
}

// A Server is the result of the comparison of the server's own count with the messages that arrived.
type Server struct {
	Known  bool   `json:"known"` // the server has a ledger, and it was read
	Sent   uint64 `json:"sent"`
	Agrees bool   `json:"agrees"` // the server's ledger lists the messages that arrived
	// Confirms reports whether the ledger differs, but only for clients with missed or duplicated messages.
	Confirms bool `json:"confirms_faults,omitempty"`
	// Uncompared is the number of messages that arrived at clients of runners that ended early or replaced another
	// runner. They are not compared, because the ledger also lists messages to the other runner, or messages that were
	// sent after the runner had ended.
	Uncompared uint64 `json:"uncompared,omitempty"`
}

// OpenToEnd returns the number of clients whose last stream was open until it ended as planned.
func (c Connections) OpenToEnd() int { return c.Completed - c.Reconnecting }

// EndText states how many clients had a stream at the end: "56 open to the end, 4 reconnecting".
func (c Connections) EndText() string {
	text := format.Thousands(c.OpenToEnd()) + " open to the end"
	if c.Reconnecting > 0 {
		text += ", " + format.Thousands(c.Reconnecting) + " reconnecting"
	}
	if c.Unwatched > 0 {
		text += ", " + format.Thousands(c.Unwatched) + " not observed to the end"
	}
	return text
}

// Partial reports whether the ledger agrees but lacks some received messages, such as messages sent before a restart.
func (s Server) Partial(received uint64) bool { return s.Agrees && s.Sent+s.Uncompared < received }

// Comparison returns a sentence that compares the server's count with the number of messages that arrived.
func (s Server) Comparison(received uint64) string {
	text, scope := "its ledger lists "+format.Thousands(s.Sent)+" as sent", ""
	compared := received - min(s.Uncompared, received)
	if s.Uncompared > 0 {
		scope = " at the clients of runners that ran from start to end"
	}
	switch {
	case s.Uncompared > 0 && compared == 0:
		return "not compared: no runner ran from start to end"
	case s.Confirms:
		return text + "; it differs from the counts of the clients only where faults were found"
	case !s.Agrees:
		return text + ", but " + format.Thousands(compared) + " arrived" + scope
	case s.Sent == 0 && compared > 0:
		return "its ledger lists none as sent, but " + format.Thousands(compared) + " arrived" + scope
	case s.Partial(received):
		return text + ", all of which arrived; the ledger lacks the others"
	case s.Sent > compared: // other events with numbers, corrupted messages, or messages to streams that were lost
		return fmt.Sprintf("%s; %s %s received%s; the ledger also counts events of POST /event/broadcast, corrupted messages and messages to lost streams",
			text, format.Thousands(compared), format.Form(compared, "was", "were"), scope)
	}
	return text + ", equal to the number received" + scope
}

// Resources has the maximum and the average usage of the processes.
type Resources struct {
	BackendRSSMax     uint64  `json:"backend_rss_max_bytes"`
	BackendCPUAverage float64 `json:"backend_cpu_avg_percent"` // percent of one core
	RunnerRSSMax      uint64  `json:"runner_rss_max_bytes"`    // maximum memory of the largest runner
	RunnerCPUAverage  float64 `json:"runner_cpu_avg_percent"`  // all runners together, in percent of one core
	NginxRSSMax       uint64  `json:"nginx_rss_max_bytes"`
	resources.SystemSummary
}

// A Check is a condition that a run must meet.
type Check struct {
	// ID is the same in every run. Checks of several subjects, such as storms, share an id.
	ID       CheckID  `json:"id"`
	Name     string   `json:"name"`
	Limit    string   `json:"limit"`
	Actual   string   `json:"actual"`
	Pass     bool     `json:"pass"`
	Severity Severity `json:"severity"`
	// Unjudged reports whether the check was not judged, for the reason in Actual. Such a check is neither met nor
	// broken, and does not change the outcome.
	Unjudged bool   `json:"not_judged,omitempty"`
	Why      string `json:"why"` // impact on users and operators of the service
	// ExplainedBy is the signal that may explain all faults of an inconclusive check.
	ExplainedBy Signal `json:"explained_by,omitempty"`

	Reasons       []string `json:"-"` // sentences that state why the check is not met
	weight        weight   // see effectiveWeight
	loadDependent bool     // a correct service may fail the check under more load
	faults        faults   // the faults that signals may explain
}

// A Severity is the effect of a check that is not met.
type Severity string

// The severities. The zero value means SeverityFail until the verdict is decided.
const (
	SeverityFail         Severity = "fail"
	SeverityInconclusive Severity = "inconclusive" // makes the run invalid (see weight)
	SeverityWarning      Severity = "warning"      // does not change the outcome
)

// A Finding is one fault of one client, in a sentence.
type Finding struct {
	Kind string  `json:"kind"`
	ID   string  `json:"id"`
	Unix float64 `json:"unix_s"`
	Text string  `json:"text"`
}

// A Runner has the state and the counts of one runner. Totals counts the messages of event streams, or the chunks of
// responses that end by themselves.
type Runner struct {
	Index       int    `json:"index"`
	Host        string `json:"host"`
	Segment     string `json:"execution_segment"`
	State       string `json:"state"`
	K6Version   string `json:"k6_version"`
	Connections int    `json:"connections"` // clients with event streams
	ledger.Totals
	ServerSent uint64  `json:"server_sent"` // messages to this runner's clients, according to the server's ledger
	RSSMax     uint64  `json:"rss_max_bytes"`
	CPUSeconds float64 `json:"cpu_seconds"`
}
