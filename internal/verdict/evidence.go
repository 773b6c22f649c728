package verdict

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Evidence is the input of a verdict: the records of the runners, the target and `soak run`.
type Evidence struct {
	Rounds  []*shard.Merged    // the merged shards of the run, then the merged shards of further rounds of a search
	Server  ServerLedger       // nil if the target has none
	Model   ModelLedger        // the ledger of the numbered model behind the service; nil: not read
	Samples []resources.Sample // of target and host, such as CPU, memory and open streams
	Cores   int                // cores of the machine of soak
	OneHost bool               // target and runners share a machine and its clock
	// ServiceCores and RunnerCores are the numbers of cores reserved for the service and for the runners; 0 if both
	// share all cores.
	ServiceCores, RunnerCores int
	// Machines are the machines that a Prometheus server scraped. The shards have the counters of the runners'
	// machines.
	Machines []*machine.Record

	Problems []string // reasons why the run is incomplete, in addition to the problems of the merge
	// RunnerEnds describes the runners that did not run to their end.
	RunnerEnds  []shard.RunnerEnd
	Failures    []TargetFailure // crashes and restarts of the target's processes; the counts of these processes are lost
	Unreachable []string        // errors of requests to the target after the runners had ended
	Warnings    []string

	Actions []ActionResult // actions of --at, in their order

	RunInfo *RunInfo // the command and the versions of the run; nil: not recorded
}

// An Assessment is the result of a suite: its checks of the evidence, and the contents of its report.
type Assessment struct {
	Layout
	Checks   []Check
	Doubts   []Check // checks that are listed last, and can only turn a pass into invalid
	Facts    []Fact
	Tables   []Table
	Metrics  []Metric
	Warnings []string
	Passed   []string // sentences that state the results of a pass
	Streams  *Streams // the event streams; nil for suites without streams
	// Responses are the responses that end by themselves; nil for other suites.
	Responses *shard.Responses
}

// A Layout decides which parts a verdict of a suite has, and how reports show them.
type Layout struct {
	Title string // name of the suite in reports, such as "Soak"
	// Declared reports whether the script declared the load. If so, the results are facts and tables. Otherwise the
	// plan has the load, and the results are the counts of clients and messages.
	Declared bool
	Page     []string // the names of the sections of report.html in their order (see sections in internal/report)
	// Disturbed[n] reports whether the script acts on stream n, from 0, and thus causes its faults; nil: on no stream.
	Disturbed []bool
}

// A Fact is a result of a suite in one line of text.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Metric is one number of a run that can be compared between runs.
type Metric struct {
	Name           string  `json:"name"`
	Unit           string  `json:"unit,omitempty"` // "ms", "requests/s", "%", "": a count
	Value          float64 `json:"value"`
	HigherIsBetter bool    `json:"higher_is_better,omitempty"`
	// Bound reports whether the load generator was the limit, so that the service may reach a better value.
	Bound bool `json:"bound,omitempty"`
	// Undelayed is the value without the delays of the load generator; nil: not known.
	Undelayed *float64 `json:"undelayed,omitempty"`
	// Requests is the number of requests that a share refers to; 0 for other metrics.
	Requests int64 `json:"requests,omitempty"`
	Fault    bool  `json:"-"` // the metric counts faults, so any increase from 0 is a regression
}

// A TargetFailure is a process of the target that crashed, or was restarted, during the run.
type TargetFailure struct {
	Unix float64 `json:"unix_s,omitempty"` // 0: not known
	Text string  `json:"text"`
}

// TargetFailureAt returns a TargetFailure. A zero time means that the time is not known.
func TargetFailureAt(at time.Time, text string) TargetFailure {
	f := TargetFailure{Text: text}
	if !at.IsZero() {
		f.Unix = format.Unix(at)
	}
	return f
}

// isPlanned reports whether a process of the target ended during an action, or within settleTime after it.
func (e *Evidence) isPlanned(f TargetFailure) bool {
	return f.Unix > 0 && slices.ContainsFunc(e.Actions, func(a ActionResult) bool {
		return a.Started() && f.Unix >= a.StartedUnix && f.Unix <= max(a.StartedUnix, a.EndedUnix)+settleTime.Seconds()
	})
}

func texts(all []TargetFailure) (out []string) {
	for _, f := range all {
		out = append(out, f.Text)
	}
	return out
}

// A RunInfo has the command, versions and machine of a run, as `soak run` recorded them. A field that was not recorded
// is empty.
type RunInfo struct {
	Command []string          `json:"command,omitempty"` // settings from the environment, then the command line, without secrets
	Commit  string            `json:"commit,omitempty"`  // commit of soak, with the suffix +dirty if files of the build were modified
	Soak    string            `json:"soak,omitempty"`    // version of soak
	K6      string            `json:"k6,omitempty"`      // version of k6, if no runner reported it
	Go      string            `json:"go,omitempty"`      // version of Go that built soak
	Backend string            `json:"backend,omitempty"` // version of our own backend
	Nginx   string            `json:"nginx,omitempty"`   // version of the nginx that soak started
	Machine resources.Machine `json:"machine"`           // machine of `soak run`
}

// A Table is a table of the report. Cells are text for readers; renderers align a column of numbers to the right.
type Table struct {
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"` // a sentence that explains the table
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// word matches a word of at least four letters. Units are shorter.
var word = regexp.MustCompile(`\pL{4}`)

// Numeric reports whether the table has rows, and each cell of a column is empty or a number, with or without a unit.
func (t *Table) Numeric(column int) bool {
	for _, row := range t.Rows {
		first, _ := utf8.DecodeRuneInString(row[column])
		if row[column] != "" && (!strings.ContainsRune("0123456789+-–", first) || word.MatchString(row[column])) {
			return false
		}
	}
	return len(t.Rows) > 0
}
