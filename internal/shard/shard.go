// Package shard defines the file that a runner leaves: its identity and its results, in a form that can be added to those of other
// runners. Runners and verdict share nothing else.
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

// Schema is the version of the format. A reader refuses any other.
const Schema = 2

// BucketWidth is the width of a bucket of the series. Buckets begin at multiples of it in Unix time, so that those of all runners
// line up.
const BucketWidth = 5 * time.Second

// A Shard has the results of one runner.
type Shard struct {
	Schema      int             `json:"schema"`
	Runner      Runner          `json:"runner"`
	Plan        plan.Plan       `json:"plan"`             // as the script parsed it
	Suite       *Suite          `json:"suite,omitempty"`  // nil: the script declares none
	Service     Service         `json:"service,omitzero"` // zero: there were no streams
	Connect     *Histogram      `json:"connect"`
	FirstNoop   *Histogram      `json:"first_noop"` // headers to the first noop
	Lateness    *Histogram      `json:"lateness"`   // gap − interval
	Latency     *Latency        `json:"latency,omitempty"`
	Reach       *Reach          `json:"reach,omitempty"` // by published message
	Series      []Bucket        `json:"series"`
	Seconds     []Second        `json:"seconds,omitempty"` // of a suite
	Checks      []Check         `json:"checks"`
	Metrics     []Metric        `json:"metrics"`
	Connections []ledger.Record `json:"connections"`         // empty in a shard from a file: see Records
	Published   *Published      `json:"published,omitempty"` // nil: this runner did not publish
	Machine     *machine.Record `json:"machine,omitempty"`   // of the runner
	Control     *Control        `json:"control,omitempty"`   // nil: there was no control group
	Codings     []Coding        `json:"codings,omitempty"`   // of compressed streams
	Redirects   []Redirect      `json:"redirects,omitempty"` // by other origins than the target's
	Shared      *Shared         `json:"shared,omitempty"`    // of streams over HTTP/2
	Ends        *Ends           `json:"ends,omitempty"`      // nil: there were none
	Responses   *Responses      `json:"responses,omitempty"` // that end by themselves; nil: of another suite
	Bursts      *Bursts         `json:"bursts,omitempty"`    // messages of streams; nil: there were no streams

	// Ledgers replace Connections in a runner: each record is made when it is written, since all of them need as much memory as the
	// streams.
	Ledgers []*ledger.Ledger `json:"-"`

	// Feeds are the messages of each topic, if they carry no numbers.
	Feeds []*feed.Log `json:"-"`

	// packed replaces Connections in a shard from a file.
	packed *Connections
}

// Records yields the record of each connection. A record is valid until the next one.
func (s *Shard) Records() iter.Seq[*ledger.Record] {
	return func(yield func(*ledger.Record) bool) {
		switch {
		case s.Ledgers != nil:
			one := new(ledger.Record)
			for _, l := range s.Ledgers {
				if *one = l.Record(); !yield(one) {
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

// Runner identifies a k6 process.
type Runner struct {
	TestID          string   `json:"testid"`
	RunID           string   `json:"run_id,omitempty"`   // see plan.Plan; "" with k6 alone
	Process         string   `json:"process,omitempty"`  // random id of the process
	Index           int      `json:"index"`              // from 1
	Segment         string   `json:"execution_segment"`  // as k6 writes it, e.g. "0:1/2"
	Iterations      int64    `json:"iterations_planned"` // over all runners
	Script          string   `json:"script"`             // file name
	ScriptHash      string   `json:"script_sha256"`
	K6Version       string   `json:"k6_version"`
	Host            string   `json:"host"`
	PID             int      `json:"pid"`
	StartedUS       int64    `json:"started_unix_us"` // origin of the instants of the ledgers
	EndedUS         int64    `json:"ended_unix_us"`   // of this checkpoint
	State           RunState `json:"state"`
	Error           string   `json:"error,omitempty"`
	RSSMax          uint64   `json:"rss_max_bytes"`
	CPUSeconds      float64  `json:"cpu_seconds"`
	RunDelaySeconds float64  `json:"run_delay_seconds"` // threads ready to run, waiting for a core, summed
	StallMaxUS      int64    `json:"stall_max_us"`      // longest delay of a wake-up of the process
	GCPauseMaxUS    int64    `json:"gc_pause_max_us"`
	Checkpoints     int      `json:"checkpoints"`
	// ReplacedStartUS is the start of the first of the runners that this one replaces; 0: it replaces none.
	ReplacedStartUS int64 `json:"begun_unix_us,omitempty"`

	Replaced bool `json:"-"` // in Merged: it ended early, and another runner has its clients

	Machine    *machine.Record `json:"-"` // of its shard, in Merged
	Controlled *RunnerControl  `json:"-"` // in Merged: its control group; nil: it had none

	fastest   *time.Duration // latency of its fastest message; nil: no message has a time
	published *Published     // nil: it did not publish
	feeds     []*feed.Log    // by topic
}

// Fastest returns the latency of the fastest message of this runner, by two clocks that may differ; ok is false if no message has
// the time at which it was sent.
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

// EndedEarly reports whether the runner was killed or interrupted, so that its clients were watched for a part of the run only. If a
// publisher ended early, the messages after its last checkpoint are unknown; the run cannot be judged without them.
func (r *Runner) EndedEarly() bool {
	return (r.State == Running || r.State == Interrupted) && r.published == nil
}

// IsComplete reports whether the runner ran from the start of the run to its end.
func (r *Runner) IsComplete() bool { return !r.EndedEarly() && r.ReplacedStartUS == 0 }

// FirstStartUS returns the start of the first of the runners that this one replaces, or its own.
func (r *Runner) FirstStartUS() int64 { return cmp.Or(r.ReplacedStartUS, r.StartedUS) }

// SecondsLeft returns how many seconds another runner with the same clients has until the end of the run. seconds is the length of the
// run from the start of this runner on.
func (r *Runner) SecondsLeft(seconds int, now time.Time) int {
	end := r.Started().Add(time.Duration(seconds) * time.Second)
	return min(int(end.Sub(now)/time.Second), seconds)
}

// StartDelay returns the time of the run before the start of this runner; 0 if it replaces none.
func (r *Runner) StartDelay() time.Duration {
	if r.ReplacedStartUS == 0 {
		return 0
	}
	return time.Duration(r.StartedUS-r.ReplacedStartUS) * time.Microsecond
}

// A RunnerEnd states why a runner did not run to its end, as the process or the cluster shows it.
type RunnerEnd struct {
	Runner int    `json:"runner"`
	Text   string `json:"text"`
}

// A RunState is how a runner ended.
type RunState string

// The states of a runner. Only Finished can be part of a pass.
const (
	Running     RunState = "running"     // a checkpoint: the runner had not ended yet
	Finished    RunState = "finished"    // ran to its end (thresholds may have failed)
	Interrupted RunState = "interrupted" // stopped by a signal
	Aborted     RunState = "aborted"     // ended by an error
)

// A Bucket sums up BucketWidth seconds of one runner.
type Bucket struct {
	Unix        int64   `json:"unix_s"` // start, a multiple of BucketWidth
	Open        int     `json:"open"`   // open streams at the end
	Opened      int     `json:"opened"`
	ConnectUS   int64   `json:"connect_us,omitempty"` // summed over the streams that opened, from the dial to the headers
	Closed      int     `json:"closed"`
	Noops       int     `json:"noops"`
	Late        int     `json:"late"`
	Faults      int     `json:"faults"` // duplicated, reordered, corrupted, lost
	Lateness    *Packed `json:"lateness,omitempty"`
	Undisturbed *Late   `json:"held,omitempty"` // of the streams that the script leaves alone, if it disturbs others
	Process
	Control *ControlCounts `json:"control,omitempty"`
}

// Late counts the late messages of some streams in a bucket.
type Late struct {
	Late   int     `json:"late"`
	LateBy *Packed `json:"late_by,omitempty"`
}

// A Process has the resources of a runner in a bucket. In sums over the runners it has their totals, and the longest pause and stall
// of any.
type Process struct {
	RSS        uint64  `json:"rss_bytes,omitempty"`
	HeapLive   uint64  `json:"heap_live_bytes,omitempty"` // live heap at the last garbage collection
	CPUPercent float64 `json:"cpu_percent"`               // seconds of CPU over BucketWidth, of one core
	Goroutines int     `json:"goroutines,omitempty"`
	Files      int     `json:"open_fds,omitempty"`
	Threads    int     `json:"threads,omitempty"`
	GCPauseUS  int64   `json:"gc_pause_us,omitempty"`  // longest stop of all goroutines in this bucket
	RunDelayMS int64   `json:"run_delay_ms,omitempty"` // threads ready to run, waiting for a core, summed
	StallMS    int64   `json:"stall_ms,omitempty"`     // longest delay of a wake-up of the process
}

// Latency is receive − send by two clocks that may differ. Histogram holds each difference plus Offset, so that it is never
// negative. Min is the smallest difference itself.
type Latency struct {
	OffsetUS  int64      `json:"offset_us"`
	MinUS     int64      `json:"min_us"`
	Histogram *Histogram `json:"histogram"`
}

// A Check is a k6 check by name.
type Check struct {
	Name   string `json:"name"`
	Passes int64  `json:"passes"`
	Fails  int64  `json:"fails"`
}

// A Metric is one k6 metric in a form that adds up: counters by sum, rates by trues and count, gauges by extremes, trends by buckets
// (in microseconds if they hold time). If a suite splits by tags, there is one for each combination of their values.
type Metric struct {
	Name    string            `json:"name"`
	Tags    map[string]string `json:"tags,omitempty"`
	Type    string            `json:"type"`
	Sum     float64           `json:"sum,omitempty"`
	Squares float64           `json:"squares,omitempty"` // sum of the squares, of a trend
	Count   int64             `json:"count,omitempty"`
	Min     float64           `json:"min,omitempty"`
	Max     float64           `json:"max,omitempty"`
	FirstUS int64             `json:"first_unix_us,omitempty"` // start of the first sample
	LastUS  int64             `json:"last_unix_us,omitempty"`  // end of the last sample
	Trend   *Histogram        `json:"trend,omitempty"`
	Own     *Histogram        `json:"own,omitempty"` // of RequestDuration: Trend without the possible delay by the generator
}
