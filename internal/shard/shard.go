// Package shard defines the file that a runner leaves. The file has the identity and the results of the runner, in a
// form that a merge can add up. A verdict receives nothing else from a runner.
package shard

import (
	"cmp"
	"iter"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/ledger/feed"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Schema is the version of the format. A reader rejects other versions.
const Schema = 3

// BucketWidth is the width of a bucket of Series, on which verdicts depend. These buckets begin at multiples of
// BucketWidth in Unix time, so that the buckets of all runners match. PointWidth is the width of a bucket of Points,
// which only charts use.
const (
	BucketWidth = 5 * time.Second
	PointWidth  = time.Second
)

// MaxPoints limits the points of a shard, because a short run may last longer than planned.
const MaxPoints = 600

// A Shard has the results of one runner.
type Shard struct {
	Schema       int             `json:"schema"`
	Runner       Runner          `json:"runner"`
	Plan         plan.Plan       `json:"plan"`              // as parsed by the script
	Suite        *Suite          `json:"suite,omitempty"`   // nil: the script declares none
	Service      Service         `json:"service,omitzero"`  // zero: no streams
	Connect      *Histogram      `json:"connect"`           // first dial to the headers, of each opened stream
	FirstMessage *Histogram      `json:"first_noop"`        // headers to the first message of each stream
	Lateness     *Histogram      `json:"lateness"`          // of messages; see ledger.Delta
	Latency      *Latency        `json:"latency,omitempty"` // nil: messages have no send time
	Reach        *Reach          `json:"reach,omitempty"`   // of published messages
	Series       []Bucket        `json:"series"`
	Points       []Bucket        `json:"points,omitempty"`  // of a short run (plan.IsShort); no Undisturbed or Control
	Seconds      []Second        `json:"seconds,omitempty"` // of a declared suite
	Checks       []ScriptCheck   `json:"checks"`
	Metrics      []Metric        `json:"metrics"`
	Connections  []ledger.Record `json:"connections"`         // empty in a shard from a file; see Records
	Published    *Published      `json:"published,omitempty"` // nil: this runner did not publish
	Machine      *machine.Record `json:"machine,omitempty"`   // of the runner
	Control      *Control        `json:"control,omitempty"`   // nil: no control group
	Codings      []Coding        `json:"codings,omitempty"`   // of compressed streams
	Redirects    []Redirect      `json:"redirects,omitempty"` // to origins other than the target's
	HTTP2        *HTTP2          `json:"shared,omitempty"`    // of streams over HTTP/2
	EndRequests  *EndRequests    `json:"ends,omitempty"`      // nil: none
	Responses    *Responses      `json:"responses,omitempty"` // finite responses; nil: the suite has none
	Bursts       *Bursts         `json:"bursts,omitempty"`    // messages of streams; nil: no messages

	// Ledgers replaces Connections in a runner, because all records together need as much memory as the streams.
	Ledgers []*ledger.Ledger `json:"-"`

	// Feeds has the messages of each topic if messages are unnumbered.
	Feeds []*feed.Log `json:"-"`

	// packed replaces Connections in a shard from a file.
	packed *Connections
}

// Records yields the record of each client. A record is valid until the next one.
func (s *Shard) Records() iter.Seq[*ledger.Record] {
	return func(yield func(*ledger.Record) bool) {
		switch {
		case s.Ledgers != nil:
			record := new(ledger.Record)
			for _, l := range s.Ledgers {
				if *record = l.Record(); !yield(record) {
					return
				}
			}
		case s.packed != nil:
			for _, c := range s.packed.All() {
				if !yield(&c.Record) {
					return
				}
			}
		default:
			for i := range s.Connections {
				if !yield(&s.Connections[i]) {
					return
				}
			}
		}
	}
}

// A Runner identifies a k6 process, and states how it ended and which resources it used.
type Runner struct {
	TestID          string   `json:"testid"`
	RunID           string   `json:"run_id,omitempty"`   // see plan.Plan; "" with k6 alone
	Process         string   `json:"process,omitempty"`  // random id of the process
	Index           int      `json:"index"`              // from 1
	Segment         string   `json:"execution_segment"`  // in k6's notation, such as "0:1/2"
	Iterations      int64    `json:"iterations_planned"` // over all runners
	Script          string   `json:"script"`             // file name
	ScriptHash      string   `json:"script_sha256"`
	K6Version       string   `json:"k6_version"`
	Host            string   `json:"host"`
	PID             int      `json:"pid"`
	StartedUS       int64    `json:"started_unix_us"` // origin of the instants of the ledgers
	EndedUS         int64    `json:"ended_unix_us"`   // end of the runner, or time of the checkpoint
	State           RunState `json:"state"`
	Error           string   `json:"error,omitempty"`
	RSSMax          uint64   `json:"rss_max_bytes"`
	CPUSeconds      float64  `json:"cpu_seconds"`
	RunDelaySeconds float64  `json:"run_delay_seconds"` // sum over the threads of the time that they waited for a core
	StallMaxUS      int64    `json:"stall_max_us"`      // longest delay of a wake-up of the process
	GCPauseMaxUS    int64    `json:"gc_pause_max_us"`
	Checkpoints     int      `json:"checkpoints"`
	// ReplacedStartUS is the start of the first of the runners that this one replaces; 0: it replaces none.
	ReplacedStartUS int64 `json:"replaced_start_unix_us,omitempty"`

	Replaced bool `json:"-"` // in Merged: it ended early, and another runner continued its clients

	Machine      *machine.Record `json:"-"` // of its shard, in Merged
	ControlGroup *RunnerControl  `json:"-"` // in Merged: its control group; nil: none
	Responses    *Responses      `json:"-"` // in Merged: the counts of chunks of its finite responses; nil: none

	fastest   *time.Duration // latency of its fastest message; nil: no message has a send time
	published *Published     // nil: the runner did not publish
	feeds     []*feed.Log    // by topic
}

// Fastest returns the latency of the fastest message, by two clocks that may differ. ok is false without send times.
func (r *Runner) Fastest() (d time.Duration, ok bool) {
	if r.fastest == nil {
		return 0, false
	}
	return *r.fastest, true
}

// Started returns the wall time of instant 0.
func (r *Runner) Started() time.Time { return time.UnixMicro(r.StartedUS) }

// At returns the wall time of an instant, by the clock at the start of the runner.
func (r *Runner) At(i ledger.Instant) time.Time { return r.Started().Add(i) }

// EndedEarly reports whether the runner was killed or interrupted, and thus watched its clients for only part of the
// run. It is false for a publisher, because the run cannot be judged without the messages after its last checkpoint.
func (r *Runner) EndedEarly() bool {
	return (r.State == Running || r.State == Interrupted) && r.published == nil
}

// IsComplete reports whether the runner neither ended early nor replaced another runner.
func (r *Runner) IsComplete() bool { return !r.EndedEarly() && r.ReplacedStartUS == 0 }

// FirstStartUS returns the start of the first runner that this one replaces, or of this one.
func (r *Runner) FirstStartUS() int64 { return cmp.Or(r.ReplacedStartUS, r.StartedUS) }

// SecondsLeft returns the number of seconds from now to the end of the run, but at most seconds. The run ends that many
// seconds after the start of this runner.
func (r *Runner) SecondsLeft(seconds int, now time.Time) int {
	end := r.Started().Add(time.Duration(seconds) * time.Second)
	return min(int(end.Sub(now)/time.Second), seconds)
}

// StartDelay returns the time from the start of the first replaced runner to the start of this runner, or 0 if it
// replaces none.
func (r *Runner) StartDelay() time.Duration {
	if r.ReplacedStartUS == 0 {
		return 0
	}
	return time.Duration(r.StartedUS-r.ReplacedStartUS) * time.Microsecond
}

// A RunnerEnd states why a runner did not run to its end. If Runner is 0, it states a problem of the whole run.
type RunnerEnd struct {
	Runner int    `json:"runner"`
	Text   string `json:"text"`
}

// A RunState is the state of a runner at the time of its last shard.
type RunState string

// The states of a runner. An aborted runner makes the run invalid. So does a running or an interrupted one, unless
// MIN_COVERAGE tolerates the client time that the runner did not watch.
const (
	Running     RunState = "running"     // the shard is a checkpoint
	Finished    RunState = "finished"    // ran to its end (thresholds may have failed)
	Interrupted RunState = "interrupted" // stopped by a signal
	Aborted     RunState = "aborted"     // ended by an error
)

// A Bucket sums up a period of one runner, of the length BucketWidth or PointWidth.
type Bucket struct {
	Unix        int64         `json:"unix_s"` // start, a multiple of the width
	Open        int           `json:"open"`   // open streams at the end
	Opened      int           `json:"opened"`
	ConnectUS   int64         `json:"connect_us,omitempty"` // sum of the times from dial to headers of the opened streams
	Closed      int           `json:"closed"`
	Noops       int           `json:"noops"` // distinct messages that arrived, not only noops
	Late        int           `json:"late"`
	Faults      int           `json:"faults"` // missing and faulty messages that the runner detected
	Lateness    *Packed       `json:"lateness,omitempty"`
	Undisturbed *LateMessages `json:"undisturbed,omitempty"` // nil: no stream is disturbed, or no message was late
	ProcessUsage
	Control *ControlCounts `json:"control,omitempty"`
}

// LateMessages counts the late messages of undisturbed streams in a bucket. A stream is undisturbed while no phase acts
// on it.
type LateMessages struct {
	Late     int     `json:"late"`
	Lateness *Packed `json:"lateness,omitempty"`
}

// A ProcessUsage is the resource usage of a runner in a bucket. In sums over runners, GCPauseUS and StallMS are maxima.
type ProcessUsage struct {
	RSS        uint64  `json:"rss_bytes,omitempty"`
	HeapLive   uint64  `json:"heap_live_bytes,omitempty"` // live heap at the last garbage collection
	CPUPercent float64 `json:"cpu_percent"`               // of one core
	Goroutines int     `json:"goroutines,omitempty"`
	Files      int     `json:"open_fds,omitempty"`
	Threads    int     `json:"threads,omitempty"`
	GCPauseUS  int64   `json:"gc_pause_us,omitempty"`  // longest stop of all goroutines in this bucket
	RunDelayMS int64   `json:"run_delay_ms,omitempty"` // sum over the threads of the time that they waited for a core
	StallMS    int64   `json:"stall_ms,omitempty"`     // longest delay of a wake-up of the process
}

// Latency has the receive time minus the send time of messages, by two clocks that may differ. Histogram has these
// differences plus OffsetUS, which makes them positive. MinUS is the smallest difference.
type Latency struct {
	OffsetUS  int64      `json:"offset_us"`
	MinUS     int64      `json:"min_us"`
	Histogram *Histogram `json:"histogram"`
}

// A ScriptCheck is a k6 check with its counts.
type ScriptCheck struct {
	Name   string `json:"name"`
	Passes int64  `json:"passes"`
	Fails  int64  `json:"fails"`
}

// A Metric is one k6 metric in a form that a merge adds up. A counter has its sum, and a gauge its extremes. A rate has
// the number of true values (Sum) and of all values (Count). A trend has a histogram, in microseconds for times. If a
// suite splits by tags, each combination of their values has a Metric.
type Metric struct {
	Name      string            `json:"name"`
	Tags      map[string]string `json:"tags,omitempty"`
	Type      string            `json:"type"`
	Sum       float64           `json:"sum,omitempty"`
	Squares   float64           `json:"squares,omitempty"` // sum of the squares, of a trend
	Count     int64             `json:"count,omitempty"`
	Min       float64           `json:"min,omitempty"`
	Max       float64           `json:"max,omitempty"`
	FirstUS   int64             `json:"first_unix_us,omitempty"` // start of the first sample
	LastUS    int64             `json:"last_unix_us,omitempty"`  // end of the last sample
	Trend     *Histogram        `json:"trend,omitempty"`
	Undelayed *Histogram        `json:"net,omitempty"` // of RequestDuration: Trend minus possible generator delay
}
