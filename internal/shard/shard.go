// Package shard is the file a runner leaves behind: what it was, what it saw, and nothing
// that cannot be added to what the other runners saw. It is the only thing the runners and
// the verdict share.
package shard

import (
	"iter"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Schema is the version of the format. A reader refuses any other.
const Schema = 2

// BucketWidth is the width of a bucket of the series; buckets begin at multiples of it in
// Unix time, so that those of all runners line up.
const BucketWidth = 5 * time.Second

// A Shard is all that one runner saw.
type Shard struct {
	Schema      int             `json:"schema"`
	Runner      Runner          `json:"runner"`
	Plan        plan.Plan       `json:"plan"`             // as the script understood it
	Suite       *Suite          `json:"suite,omitempty"`  // what the script declares; nil where it declares nothing
	Service     Service         `json:"service,omitzero"` // of the streams; zero: there were none
	Connect     *Histogram      `json:"connect"`
	FirstNoop   *Histogram      `json:"first_noop"` // headers to the first noop
	Lateness    *Histogram      `json:"lateness"`   // gap − interval
	Latency     *Latency        `json:"latency,omitempty"`
	Reach       *Reach          `json:"reach,omitempty"` // of what was published, by message
	Series      []Bucket        `json:"series"`
	Seconds     []Second        `json:"seconds,omitempty"` // of a suite
	Checks      []Check         `json:"checks"`
	Metrics     []Metric        `json:"metrics"`
	Connections []ledger.Record `json:"connections"`         // empty in a shard that was read: see Records
	Published   *Published      `json:"published,omitempty"` // of the runner that published; nil of others
	Machine     *machine.Record `json:"machine,omitempty"`   // that it ran on
	Control     *Control        `json:"control,omitempty"`   // nil where there was none
	Codings     []Coding        `json:"codings,omitempty"`   // of streams that came compressed
	Redirects   []Redirect      `json:"redirects,omitempty"` // by other origins than the target's
	Shared      *Shared         `json:"shared,omitempty"`    // of streams over HTTP/2
	Ends        *Ends           `json:"ends,omitempty"`      // nil where none were made

	// Ledgers are what a runner has in place of Connections: each record is made when it is written, since all of them together
	// take as much memory as the streams.
	Ledgers []*ledger.Ledger `json:"-"`

	// packed holds the records of a shard that was read, in place of Connections.
	packed *Connections
}

// Records returns the record of each connection. A record is valid until the next one.
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
	RunID           string   `json:"run_id,omitempty"`   // of plan.Plan; "" with k6 alone
	Process         string   `json:"process,omitempty"`  // drawn by the process for itself
	Index           int      `json:"index"`              // from 1
	Segment         string   `json:"execution_segment"`  // as k6 writes it, e.g. "0:1/2"
	Iterations      int64    `json:"iterations_planned"` // over all runners
	Script          string   `json:"script"`             // file name
	ScriptHash      string   `json:"script_sha256"`
	K6Version       string   `json:"k6_version"`
	Host            string   `json:"host"`
	PID             int      `json:"pid"`
	StartedUS       int64    `json:"started_unix_us"` // what the instants of the ledgers count from
	EndedUS         int64    `json:"ended_unix_us"`   // of this checkpoint
	State           RunState `json:"state"`
	Error           string   `json:"error,omitempty"`
	RSSMax          uint64   `json:"rss_max_bytes"`
	CPUSeconds      float64  `json:"cpu_seconds"`
	RunDelaySeconds float64  `json:"run_delay_seconds"` // threads ready to run, waiting for a core, summed
	StallMaxUS      int64    `json:"stall_max_us"`      // longest time by which the process woke up late
	GCPauseMaxUS    int64    `json:"gc_pause_max_us"`
	Checkpoints     int      `json:"checkpoints"`

	Machine    *machine.Record `json:"-"` // that of its shard, in Merged
	Controlled *Controlled     `json:"-"` // in a merge: its control group; nil: it had none

	fastest   *time.Duration // message of this runner; nil: no message has a time in it
	published *Published     // what it published; nil: nothing
}

// Fastest is how long the fastest message took to this runner, by two clocks that may differ; ok is false where no
// message had the time of sending in it.
func (r *Runner) Fastest() (d time.Duration, ok bool) {
	if r.fastest == nil {
		return 0, false
	}
	return *r.fastest, true
}

// Started is the wall time that instants count from.
func (r *Runner) Started() time.Time { return time.UnixMicro(r.StartedUS) }

// At is the wall time of an instant, by the clock as it was when the runner started.
func (r *Runner) At(i ledger.Instant) time.Time { return r.Started().Add(i) }

// RunState is how far the runner came.
type RunState string

// Only Finished can be part of a pass.
const (
	Running     RunState = "running"     // a checkpoint: the runner had not ended yet
	Finished    RunState = "finished"    // ran to its end (thresholds may have failed)
	Interrupted RunState = "interrupted" // stopped by a signal
	Aborted     RunState = "aborted"     // ended by an error
)

// A Bucket sums up BucketWidth seconds of one runner.
type Bucket struct {
	Unix     int64   `json:"unix_s"` // start, a multiple of BucketWidth
	Open     int     `json:"open"`   // streams held at the bucket's end
	Opened   int     `json:"opened"`
	Closed   int     `json:"closed"`
	Noops    int     `json:"noops"`
	Late     int     `json:"late"`
	Faults   int     `json:"faults"` // duplicated, reordered, corrupted, found lost
	Lateness *Packed `json:"lateness,omitempty"`
	Held     *Late   `json:"held,omitempty"` // of the streams that are held, where the script does something to others
	Process
	Control *ControlCounts `json:"control,omitempty"`
}

// Late is how many messages of some streams were late in a bucket, and how late; nil where that is not known.
type Late struct {
	Late   int     `json:"late"`
	LateBy *Packed `json:"late_by,omitempty"`
}

// A Process is what a runner took of its machine in a bucket; in sums over the runners, what all took together,
// but the longest pause and stall of any.
type Process struct {
	RSS        uint64  `json:"rss_bytes,omitempty"`
	HeapLive   uint64  `json:"heap_live_bytes,omitempty"` // what the last garbage collection found in use
	CPUPercent float64 `json:"cpu_percent"`               // seconds of CPU over BucketWidth, of one core
	Goroutines int     `json:"goroutines,omitempty"`
	Files      int     `json:"open_fds,omitempty"`
	Threads    int     `json:"threads,omitempty"`
	GCPauseUS  int64   `json:"gc_pause_us,omitempty"`  // longest stop of all goroutines in this bucket
	RunDelayMS int64   `json:"run_delay_ms,omitempty"` // threads ready to run, waiting for a core, summed
	StallMS    int64   `json:"stall_ms,omitempty"`     // longest time by which the process woke up late
}

// Latency is receive − send by two clocks that may differ: Histogram holds each difference
// plus Offset, so that it is never negative, and Min is the smallest difference itself.
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

// A Metric is one k6 metric, in a form that adds up: counters by sum, rates by trues and
// count, gauges by extremes, trends by buckets (in microseconds where they hold time). Where a
// suite splits by tags there is one for each combination that was seen.
type Metric struct {
	Name    string            `json:"name"`
	Tags    map[string]string `json:"tags,omitempty"`
	Type    string            `json:"type"`
	Sum     float64           `json:"sum,omitempty"`
	Squares float64           `json:"squares,omitempty"` // sum of the squares, of a trend
	Count   int64             `json:"count,omitempty"`
	Min     float64           `json:"min,omitempty"`
	Max     float64           `json:"max,omitempty"`
	FirstUS int64             `json:"first_unix_us,omitempty"` // of the first sample: the start of what it timed
	LastUS  int64             `json:"last_unix_us,omitempty"`  // of the last sample: its end
	Trend   *Histogram        `json:"trend,omitempty"`
	Own     *Histogram        `json:"own,omitempty"` // of RequestDuration: Trend without what the generator can have added to each
}
