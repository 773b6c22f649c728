// Package live shows a run in progress: it collects the reports of the runners, and serves the page that browsers
// follow. No verdict depends on it.
package live

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	maxFindings     = 300              // maximum number of findings that a Watch stores
	settleTime      = 60 * time.Second // age of a bucket after which its updates are ignored
	latenessBuckets = 24               // buckets in the chart of a runner's lateness
)

// A Finding is a fault, an action or a warning during the run.
type Finding struct {
	At     time.Time
	Runner int    // 0: none
	ID     string // of the client; "": none
	Text   string
}

// A Runner is the last report of one runner.
type Runner struct {
	Index int
	Host  string
	shard.Progress
	ReportedAt time.Time     // zero: no report yet
	Patience   time.Duration // time without a report after which the runner counts as silent; 0: silentAfter
	Ended      bool
	Process    shard.ProcessUsage // of the last bucket with a reading of the process
	// Late has the p99 of lateness in each of the last buckets, oldest first; negative if nothing was received in it.
	Late []time.Duration

	lateUnix int64 // time of the bucket of the last element of Late
}

// A Watch collects the reports of runners. The zero value is ready to use, by any number of goroutines.
type Watch struct {
	mu           sync.Mutex
	runners      []*Runner // by index
	short        bool      // the buckets are points
	complete     []shard.Bucket
	recent       map[int64]map[int]shard.Bucket // by time and runner
	findings     []Finding                      // the newest ones
	findingCount int                            // all findings so far
	unlisted     int                            // findings that the runners counted but did not report
	responses    map[int][]shard.ResponseBucket // by runner
}

// Add adds a report of a runner. A nil report means that the runner has ended.
func (w *Watch) Add(index int, p *shard.Progress) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runner(index)
	if p == nil {
		r.Ended, r.Open = true, 0
		return
	}
	r.Progress, r.ReportedAt, r.Ended = *p, now, false
	w.short = w.short || len(p.Points) > 0
	for _, b := range slices.Concat(p.Buckets, p.Points) {
		w.addBucket(r, b)
	}
	for _, f := range p.Found {
		w.note(Finding{At: time.UnixMilli(f.AtMS), Runner: index, ID: f.ID, Text: f.Text})
	}
	for _, b := range p.Responses {
		w.addResponses(index, b)
	}
	w.unlisted += p.Unlisted
	r.Buckets, r.Points, r.Found, r.Responses = nil, nil, nil, nil
}

// addResponses adds a bucket of responses, which may be an update of the last one.
func (w *Watch) addResponses(index int, b shard.ResponseBucket) {
	if w.responses == nil {
		w.responses = map[int][]shard.ResponseBucket{}
	}
	buckets := w.responses[index]
	if n := len(buckets); n > 0 && buckets[n-1].Unix == b.Unix {
		buckets = buckets[:n-1]
	}
	w.responses[index] = append(buckets, b)
}

// Responses returns the states and times of the responses of all runners so far; nil without responses.
func (w *Watch) Responses() *shard.Responses {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.responses) == 0 {
		return nil
	}
	out := shard.NewResponses()
	for _, buckets := range w.responses {
		_ = out.Merge(&shard.Responses{Series: buckets}) // the merge of the shards reports an unreadable histogram
	}
	for _, b := range out.Series {
		for state, n := range b.States {
			out.States[state] += n
		}
	}
	return out
}

// Note adds a finding of this machine.
func (w *Watch) Note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(Finding{At: time.Now(), Text: text})
}

func (w *Watch) note(f Finding) {
	w.findingCount++
	w.findings = append(w.findings, f)
	if excess := len(w.findings) - maxFindings; excess > 0 {
		w.findings = slices.Delete(w.findings, 0, excess)
	}
}

func (w *Watch) runner(index int) *Runner {
	i, found := slices.BinarySearchFunc(w.runners, index, func(r *Runner, index int) int { return cmp.Compare(r.Index, index) })
	if !found {
		w.runners = slices.Insert(w.runners, i, &Runner{Index: index})
	}
	return w.runners[i]
}

// addBucket adds a bucket of a runner, which may be an update of an earlier one. It ignores a bucket that is too old.
func (w *Watch) addBucket(r *Runner, b shard.Bucket) {
	if w.recent == nil {
		w.recent = map[int64]map[int]shard.Bucket{}
	}
	if n := len(w.complete); n > 0 && b.Unix <= w.complete[n-1].Unix {
		return // the clock of the runner is slow; its shard has the bucket
	}
	if w.recent[b.Unix] == nil {
		w.recent[b.Unix] = map[int]shard.Bucket{}
		w.settle(b.Unix - int64(settleTime/time.Second))
	}
	w.recent[b.Unix][r.Index] = b
	if b.RSS > 0 {
		r.Process = b.ProcessUsage
	}
	r.addLateness(b)
}

// addLateness adds the lateness of a bucket to Late, or updates the last element if it belongs to the same bucket.
func (r *Runner) addLateness(b shard.Bucket) {
	late := time.Duration(-1)
	if b.Lateness != nil {
		if h, err := b.Lateness.Unpack(); err == nil {
			late = h.Quantile(.99)
		}
	}
	if len(r.Late) > 0 && b.Unix == r.lateUnix {
		r.Late[len(r.Late)-1] = late
		return
	}
	r.Late, r.lateUnix = append(r.Late, late), b.Unix
	if len(r.Late) > latenessBuckets {
		r.Late = slices.Delete(r.Late, 0, 1)
	}
}

// settle moves the buckets before limit from w.recent to w.complete.
func (w *Watch) settle(limit int64) {
	for _, b := range w.recentBuckets(limit) {
		w.complete = append(w.complete, b)
		delete(w.recent, b.Unix)
	}
}

func (w *Watch) recentBuckets(limit int64) []shard.Bucket {
	var out []shard.Bucket
	for unix, byRunner := range w.recent {
		if unix < limit {
			out = slices.AppendSeq(out, maps.Values(byRunner))
		}
	}
	return shard.SumBuckets(out)
}

// Series returns all buckets so far, each summed over the runners. The buckets of a short run are points. The last
// bucket may be incomplete.
func (w *Watch) Series() (series, points []shard.Bucket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	buckets := append(slices.Clone(w.complete), w.recentBuckets(math.MaxInt64)...)
	if w.short {
		return nil, buckets
	}
	return buckets, nil
}

// Runners returns the last report of each runner, by index.
func (w *Watch) Runners() []Runner {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Runner, len(w.runners))
	for i, r := range w.runners {
		out[i] = *r
		out[i].Late = slices.Clone(r.Late)
	}
	return out
}

// Total returns the sum of the last reports of all runners, and the lateness of all messages.
func (w *Watch) Total() (sum shard.Progress, lateness *shard.Histogram) { return total(w.Runners()) }

func total(runners []Runner) (sum shard.Progress, lateness *shard.Histogram) {
	lateness = shard.NewHistogram()
	for i := range runners {
		sum.Add(runners[i].Progress)
		if packed := runners[i].Lateness; packed != nil {
			if h, err := packed.Unpack(); err == nil {
				lateness.Merge(h)
			}
		}
	}
	return sum, lateness
}

// Findings returns the stored findings from number n on. next is the number of the next finding. unlisted is the number
// of findings that the runners counted but did not report.
func (w *Watch) Findings(n int) (listed []Finding, next, unlisted int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.findingCount - len(w.findings)
	return slices.Clone(w.findings[min(max(n-first, 0), len(w.findings)):]), w.findingCount, w.unlisted
}

// Sentence returns the finding with its runner and client.
func (f *Finding) Sentence() string {
	switch {
	case f.ID != "":
		return fmt.Sprintf("runner %d, %s: %s", f.Runner, f.ID, f.Text)
	case f.Runner > 0:
		return fmt.Sprintf("runner %d: %s", f.Runner, f.Text)
	}
	return f.Text
}

const (
	// silentAfter is the time without a report after which a runner counts as silent. Runners report each second; on
	// Kubernetes, soak requests the reports every 5 s.
	silentAfter = 15 * time.Second
	stallMS     = 100 // minimum stall on the page; verdicts have their own limit
)

// Health returns the state of a runner in words, and reports whether the runner has no problem.
func (r *Runner) Health(now time.Time) (text string, healthy bool) {
	silent := now.Sub(r.ReportedAt)
	switch {
	case r.Ended:
		return "ended", true
	case r.ReportedAt.IsZero():
		return "starting", true
	case r.Trouble != "":
		return r.Trouble, false
	case silent > cmp.Or(r.Patience, silentAfter):
		return "silent for " + format.Duration(silent.Round(time.Second)), false
	case r.Process.StallMS >= stallMS:
		return fmt.Sprintf("stalled for %d ms", r.Process.StallMS), false
	}
	return "ok", true
}
