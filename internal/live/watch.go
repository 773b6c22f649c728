// Package live knows a run while it goes on: what its runners say of themselves each second. It is for people; no verdict
// rests on it.
package live

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	mostFindings = 300              // that are listed; all are counted
	settled      = 60 * time.Second // after this a bucket is summed up for good: no runner is that far behind
	// Sparks is how many buckets back the lateness of a runner is known.
	Sparks = 24
)

// A Finding is something that went wrong, or that somebody did, while the run went on.
type Finding struct {
	At     time.Time
	Runner int    // 0: not of one
	ID     string // of the connection; "": not of one
	What   string
}

// A Runner is what one runner said last.
type Runner struct {
	Index int
	shard.Progress
	Heard   time.Time     // zero: it said nothing yet
	Ended   bool          // it says nothing more
	Process shard.Process // of its last whole bucket
	// Late is the p99 of lateness in the last buckets, oldest first; negative where nothing came.
	Late []time.Duration

	lateFrom int64 // Unix, the bucket of the last of Late
}

// A Watch collects what is heard. The zero value is ready to use, by any number of goroutines.
type Watch struct {
	mu       sync.Mutex
	runners  []*Runner // by index
	whole    []shard.Bucket
	recent   map[int64]map[int]shard.Bucket // by time and runner
	findings []Finding                      // the newest
	found    int                            // how many were listed, ever
	unlisted int                            // how many runners only counted
}

// Hear takes what a runner says of itself; nil when it has ended.
func (w *Watch) Hear(index int, p *shard.Progress) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runner(index)
	if p == nil {
		r.Ended, r.Open = true, 0
		return
	}
	r.Progress, r.Heard, r.Ended = *p, now, false
	for _, b := range p.Buckets {
		w.take(r, b)
	}
	for _, f := range p.Found {
		w.note(Finding{At: time.UnixMilli(f.AtMS), Runner: index, ID: f.ID, What: f.What})
	}
	w.unlisted += p.Unlisted
	r.Buckets, r.Found = nil, nil
}

// Note adds what this machine saw or did.
func (w *Watch) Note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(Finding{At: time.Now(), What: what})
}

func (w *Watch) note(f Finding) {
	w.found++
	w.findings = append(w.findings, f)
	if over := len(w.findings) - mostFindings; over > 0 {
		w.findings = slices.Delete(w.findings, 0, over)
	}
}

func (w *Watch) runner(index int) *Runner {
	i, found := slices.BinarySearchFunc(w.runners, index, func(r *Runner, index int) int { return cmp.Compare(r.Index, index) })
	if !found {
		w.runners = slices.Insert(w.runners, i, &Runner{Index: index})
	}
	return w.runners[i]
}

// take takes a bucket of a runner: it may be the one before, further on.
func (w *Watch) take(r *Runner, b shard.Bucket) {
	if w.recent == nil {
		w.recent = map[int64]map[int]shard.Bucket{}
	}
	if n := len(w.whole); n > 0 && b.Unix <= w.whole[n-1].Unix {
		return // of a clock that is an hour slow, say: the shards have it
	}
	if w.recent[b.Unix] == nil {
		w.recent[b.Unix] = map[int]shard.Bucket{}
		w.settle(b.Unix - int64(settled/time.Second))
	}
	w.recent[b.Unix][r.Index] = b
	if b.RSS > 0 {
		r.Process = b.Process
	}
	r.spark(b)
}

// spark adds the lateness of a bucket to the last ones.
func (r *Runner) spark(b shard.Bucket) {
	late := time.Duration(-1)
	if b.Lateness != nil {
		if h, err := b.Lateness.Unpack(); err == nil {
			late = h.Quantile(.99)
		}
	}
	switch {
	case len(r.Late) > 0 && b.Unix == r.lateFrom:
		r.Late[len(r.Late)-1] = late
	default:
		r.Late = append(r.Late, late)
		if len(r.Late) > Sparks {
			r.Late = slices.Delete(r.Late, 0, 1)
		}
	}
	r.lateFrom = b.Unix
}

// settle sums up the buckets before a time for good.
func (w *Watch) settle(before int64) {
	for _, b := range w.summed(func(unix int64) bool { return unix < before }) {
		w.whole = append(w.whole, b)
		delete(w.recent, b.Unix)
	}
}

// summed are those of the recent buckets, each the sum over the runners.
func (w *Watch) summed(which func(unix int64) bool) []shard.Bucket {
	var out []shard.Bucket
	for unix, of := range w.recent {
		if !which(unix) {
			continue
		}
		buckets := make([]shard.Bucket, 0, len(of))
		for _, b := range of {
			buckets = append(buckets, b)
		}
		sum, _ := shard.SumBuckets(buckets) // of a histogram that cannot be read the shards will tell
		out = append(out, sum)
	}
	slices.SortFunc(out, func(a, b shard.Bucket) int { return cmp.Compare(a.Unix, b.Unix) })
	return out
}

// Series are the sums over all runners from a time on, the last bucket as far as it has come.
func (w *Watch) Series(from int64) []shard.Bucket {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearchFunc(w.whole, from, func(b shard.Bucket, unix int64) int { return cmp.Compare(b.Unix, unix) })
	return append(slices.Clone(w.whole[i:]), w.summed(func(unix int64) bool { return unix >= from })...)
}

// Runners are those that were heard, by index.
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

// Findings are those from the nth on, as far as they are still listed. next is the n of the first that is to come, and
// unlisted how many more there were.
func (w *Watch) Findings(n int) (listed []Finding, next, unlisted int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.found - len(w.findings)
	return slices.Clone(w.findings[min(max(n-first, 0), len(w.findings)):]), w.found, w.unlisted
}

// Words say whom a finding is of, and what.
func (f *Finding) Words() string {
	switch {
	case f.ID != "":
		return fmt.Sprintf("runner %d, %s: %s", f.Runner, f.ID, f.What)
	case f.Runner > 0:
		return fmt.Sprintf("runner %d: %s", f.Runner, f.What)
	}
	return f.What
}
