package verdict

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An Evidence has the records of a run: of its runners, its target and `soak run`. Judging does not modify it.
type Evidence struct {
	Rounds  []*shard.Merged    // the first is the run, others searched further
	Server  ServerLedger       // nil if the target has none
	Model   ModelLedger        // of the numbered model behind the service; nil: not read
	Samples []resources.Sample // of target and host
	Cores   int                // of the machine
	OneHost bool               // target and runners share a machine, so their clocks are one
	// ServiceCores and RunnerCores are the numbers of cores reserved for each; 0 if they shared all.
	ServiceCores, RunnerCores int
	// Machines are the machines that a Prometheus scraped. The shards of runners have the counters of their own
	// machines.
	Machines []*machine.Record

	Problems []string // why the run is incomplete, in addition to the shards
	// RunnerEnds are of the runners that did not run to their end.
	RunnerEnds  []shard.RunnerEnd
	Failures    []Failure // of the target's processes, in a complete run; their own counts are lost
	Unreachable []string  // of the target, what did not answer any more when the runners had ended
	Warnings    []string

	Actions []ActionResult // of --at, in their order

	RunInfo *RunInfo // the origin of the run; nil: not recorded
}

// An Assessment is what a suite concludes from the evidence.
type Assessment struct {
	Layout
	Checks   []Check
	Doubts   []Check // checks after all others: they can only revoke a pass
	Facts    []Fact
	Tables   []Table
	Metrics  []Metric
	Warnings []string
	Passed   []string // results of a pass, in sentences
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
	// Undelayed is the value without the waits of the load generator; nil: not known.
	Undelayed *float64 `json:"own,omitempty"`
	// Requests is the number of requests that a share refers to; 0 for other metrics.
	Requests int64 `json:"requests,omitempty"`
	Fault    bool  `json:"-"` // it counts what must not be: the first one is a regression
}

// A Failure is a process of the target that crashed, or was restarted, during the run.
type Failure struct {
	Unix float64 `json:"unix_s,omitempty"` // 0: not known
	Text string  `json:"text"`
}

// FailureAt returns a Failure. A zero time means that the time is not known.
func FailureAt(at time.Time, text string) Failure {
	f := Failure{Text: text}
	if !at.IsZero() {
		f.Unix = unix(at)
	}
	return f
}

// isPlanned reports whether a process of the target ended during an action, or within a minute after it: its streams
// and responses show the effect of the restart.
func (e *Evidence) isPlanned(f Failure) bool {
	return f.Unix > 0 && slices.ContainsFunc(e.Actions, func(a ActionResult) bool {
		return a.Started() && f.Unix >= a.StartedUnix && f.Unix <= max(a.StartedUnix, a.EndedUnix)+settleTime.Seconds()
	})
}

// texts returns the texts of failures.
func texts(all []Failure) (out []string) {
	for _, f := range all {
		out = append(out, f.Text)
	}
	return out
}

// A RunInfo is the origin of a run, as `soak run` recorded it. Empty fields are not recorded.
type RunInfo struct {
	Command []string          `json:"command,omitempty"` // as typed, with the variables that were settings in front of it, without secrets
	Commit  string            `json:"commit,omitempty"`  // of soak, and +dirty behind it where files of the build had changed
	Soak    string            `json:"soak,omitempty"`    // version
	K6      string            `json:"k6,omitempty"`      // version of k6, if no runner has it
	Go      string            `json:"go,omitempty"`      // version of Go that built soak
	Backend string            `json:"backend,omitempty"` // version of our own backend
	Nginx   string            `json:"nginx,omitempty"`   // version of the nginx that soak started
	Machine resources.Machine `json:"machine"`           // of `soak run`
}

// A Table is a section of the report. Cells are text for readers; renderers align a column of numbers to the right.
type Table struct {
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"` // how to read it, in a sentence
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// word matches a word; units are shorter.
var word = regexp.MustCompile(`\pL{4}`)

// Numeric reports whether a column has only numbers or nothing. "20 at a time" is a name.
func (t *Table) Numeric(column int) bool {
	for _, row := range t.Rows {
		first, _ := utf8.DecodeRuneInString(row[column])
		if row[column] != "" && (!strings.ContainsRune("0123456789+-–", first) || word.MatchString(row[column])) {
			return false
		}
	}
	return len(t.Rows) > 0
}
