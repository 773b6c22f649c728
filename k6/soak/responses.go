package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// responses sums up the responses that end by themselves.
type responses struct {
	limits  shard.ResponseLimits
	runners int // of the run

	mu         sync.Mutex
	sum        *shard.Responses
	inFlight   int64
	bucket     shard.ResponseBucket
	first, gap *shard.Histogram // of the bucket

	reportedBuckets, reportedFindings int // in lines of progress
}

func newResponses(limits shard.ResponseLimits, runners int, now time.Time) *responses {
	r := &responses{limits: limits, runners: runners, sum: shard.NewResponses(), first: shard.NewHistogram(), gap: shard.NewHistogram()}
	r.begin(bucketOf(now))
	return r
}

// begin begins a bucket. The caller holds mu, but for the first one.
func (r *responses) begin(unix int64) {
	r.bucket = shard.ResponseBucket{Unix: unix, States: map[ledger.ResponseState]int64{}}
}

// roll ends the present bucket if its time is over. The caller holds mu.
func (r *responses) roll(now time.Time) {
	unix := bucketOf(now)
	if unix == r.bucket.Unix {
		return
	}
	r.bucket.InFlight = r.inFlight
	if r.bucket.Started > 0 || len(r.bucket.States) > 0 || r.inFlight > 0 {
		r.bucket.First, r.bucket.Gap = packed(r.first), packed(r.gap)
		r.sum.Series = append(r.sum.Series, r.bucket)
	}
	r.begin(unix)
}

// packed returns the stored form of a histogram, which is empty then; nil if it was empty.
func packed(h *shard.Histogram) *shard.Packed {
	if h.Count() == 0 {
		return nil
	}
	defer h.Reset()
	return h.PackCoarse()
}

// started counts a request that is made now.
func (r *responses) started(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roll(now)
	r.bucket.Started++
	r.inFlight++
}

// opened counts a response whose headers arrived.
func (r *responses) opened(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Bursts.AddServer(server, 1)
}

// skipped counts a request that is not made.
func (r *responses) skipped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Skipped++
}

// ended counts a response that has ended.
func (r *responses) ended(one *ledger.Response, id, reason string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roll(now)
	r.inFlight--
	r.bucket.States[one.State]++
	r.sum.Add(one, id, reason, now, r.limits)
	if one.State != ledger.ResponseComplete {
		return
	}
	r.first.Record(one.First - one.Due)
	for _, us := range one.Gaps {
		r.gap.Record(time.Duration(us) * time.Microsecond)
	}
}

// copy returns all that was seen so far, the present bucket included.
func (r *responses) copy() *shard.Responses {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.sum.Copy()
	if now := r.present(); now.Started > 0 || len(now.States) > 0 {
		_ = out.Merge(&shard.Responses{Series: []shard.ResponseBucket{now}}) // it was not read from a file
	}
	return out
}

// present returns the present bucket so far. The caller holds mu.
func (r *responses) present() shard.ResponseBucket {
	now := r.bucket
	now.InFlight, now.States = r.inFlight, maps.Clone(now.States)
	if r.first.Count() > 0 {
		now.First = r.first.PackCoarse()
	}
	if r.gap.Count() > 0 {
		now.Gap = r.gap.PackCoarse()
	}
	return now
}

// progress adds the counts for the progress line, and what is new since the last one.
func (r *responses) progress(p *shard.Progress) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.CountResponses(r.sum)
	p.Responses = append(slices.Clone(r.sum.Series[r.reportedBuckets:]), r.present())
	for _, f := range r.sum.Findings[r.reportedFindings:] {
		if len(p.Found) < maxFindings {
			p.Found = append(p.Found, shard.FoundFault{AtMS: f.AtUS / 1000, ID: f.ID, What: describeFinding(&f)})
		} else {
			p.Unlisted++
		}
	}
	r.reportedBuckets, r.reportedFindings = len(r.sum.Series), len(r.sum.Findings)
}

// describeFinding describes a faulty response for those who watch the run.
func describeFinding(f *shard.ResponseFinding) string {
	text := strings.ReplaceAll(string(f.State), "_", " ") + fmt.Sprintf(" after %d chunks", f.Chunks)
	for _, c := range []struct {
		n    uint64
		word string
	}{{f.Counts.Missed, "missed"}, {f.Counts.Duplicated, "duplicated"}, {f.Counts.Reordered, "reordered"}, {f.Counts.Corrupted, "corrupted"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.word)
		}
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}
