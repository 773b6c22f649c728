package verdict

import (
	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Evidence has the records of a run: of its runners, its target and `soak run`. Judging only reads it.
type Evidence struct {
	Rounds  []*shard.Merged    // the first is the run, others searched further
	Server  ServerLedger       // nil where the target keeps none
	Samples []resources.Sample // of target and host
	Cores   int                // of the machine
	OneHost bool               // target and runners share a machine, so their clocks are one
	// ServiceCores and RunnerCores are how many cores each had of its own there; 0 where they shared all.
	ServiceCores, RunnerCores int
	// Machines are those that a Prometheus watched. The runners have their own in their shards.
	Machines []*machine.Record

	Problems []string  // why the run is incomplete, beyond what the shards say
	Failures []Failure // of the target's processes, in a complete run; their own counts are lost
	Gone     []string  // of the target, what did not answer any more when the runners had ended
	Warnings []string

	Actions []Acted // of --at, in their order

	Ran *Ran // the origin of the run; nil: not recorded
}

// An Assessment is what a suite concludes from the evidence.
type Assessment struct {
	Layout
	Checks   []Check
	Doubts   []Check // checks that come last: they only take a pass back
	Facts    []Fact
	Tables   []Table
	Metrics  []Metric
	Warnings []string
	Passed   []string // what a pass has shown, in sentences
	Streams  *Streams // the counts of the event streams; nil if there were none
	// Responses are those that end by themselves; nil if there were none.
	Responses *shard.Responses
}

// A Layout is how verdicts of a suite are written and shown.
type Layout struct {
	Title string // "Soak"
	// Declared reports whether the script declared its load, and facts and tables its results. Otherwise the plan has
	// the load, and the counts of connections and noops the results.
	Declared bool
	Page     []string // the sections of report.html in their order, by the names that internal/report/html has for them
}

// A Fact is one line of what a suite found, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Metric is one number of a run that can be compared with that of another run.
type Metric struct {
	Name           string  `json:"name"`
	Unit           string  `json:"unit,omitempty"` // "ms", "requests/s", "%", "": a count
	Value          float64 `json:"value"`
	HigherIsBetter bool    `json:"higher_is_better,omitempty"`
	// Bound reports whether the load generator was the limit; the service may be able to do more.
	Bound bool `json:"bound,omitempty"`
	// Own is the value without the waits of the load generator; nil: not known.
	Own *float64 `json:"own,omitempty"`
	// Requests is the number of requests that a share refers to; 0 for other metrics.
	Requests int64 `json:"requests,omitempty"`
	Fault    bool  `json:"-"` // it counts what must not be: the first one is a regression
}
