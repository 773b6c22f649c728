package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A responses value holds the sums of the finite responses of a runner.
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

// newResponses returns empty sums. now is the time by the wall clock of the run.
func newResponses(limits shard.ResponseLimits, runners int, now time.Time) *responses {
	r := &responses{limits: limits, runners: runners, sum: shard.NewResponses(), first: shard.NewHistogram(), gap: shard.NewHistogram()}
	r.startBucket(bucketOf(now))
	return r
}

// startBucket replaces the current bucket with an empty one. The caller holds mu.
func (r *responses) startBucket(unix int64) {
	r.bucket = shard.ResponseBucket{Unix: unix, States: map[ledger.ResponseState]int64{}}
}

// endBucketIfOver ends the current bucket and starts the next one, if now is after the current bucket. It drops an
// empty bucket. The caller holds mu.
func (r *responses) endBucketIfOver(now time.Time) {
	unix := bucketOf(now)
	if unix <= r.bucket.Unix { // another goroutine may have ended the bucket
		return
	}
	r.bucket.InFlight = r.inFlight
	if r.bucket.Started > 0 || len(r.bucket.States) > 0 || r.inFlight > 0 {
		r.bucket.First, r.bucket.Gap = packNonEmpty(r.first), packNonEmpty(r.gap)
		r.first.Reset()
		r.gap.Reset()
		r.sum.Series = append(r.sum.Series, r.bucket)
	}
	r.startBucket(unix)
}

// packNonEmpty returns the coarse stored form of a histogram, nil if it is empty.
func packNonEmpty(h *shard.Histogram) *shard.Packed {
	if h.Count() == 0 {
		return nil
	}
	return h.PackCoarse()
}

func (r *responses) addStart(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endBucketIfOver(now)
	r.bucket.Started++
	r.inFlight++
}

// addOpened counts a response whose headers have arrived, by the header Server.
func (r *responses) addOpened(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Bursts.AddServer(server, 1)
}

func (r *responses) addSkipped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Skipped++
}

// addRefusedLocally counts a response that was refused because this machine lacked a port, a descriptor or an IPv6
// address for its connection.
func (r *responses) addRefusedLocally() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.RefusedLocally++
}

func (r *responses) addEnd(response *ledger.Response, id, reason string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endBucketIfOver(now)
	r.inFlight--
	r.bucket.States[response.State]++
	r.sum.Add(response, id, reason, now, r.limits)
	if response.State != ledger.ResponseComplete {
		return
	}
	r.first.Record(response.First - response.Due)
	for _, micros := range response.Gaps {
		r.gap.Record(time.Duration(micros) * time.Microsecond)
	}
}

// copy returns the sums with the current bucket, nil if r is nil.
func (r *responses) copy() *shard.Responses {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.sum.Copy()
	if current := r.currentBucket(); current.Started > 0 || len(current.States) > 0 {
		_ = out.Merge(&shard.Responses{Series: []shard.ResponseBucket{current}}) // Merge fails only for data from a file
	}
	return out
}

// currentBucket returns a copy of the current bucket. The caller holds mu.
func (r *responses) currentBucket() shard.ResponseBucket {
	current := r.bucket
	current.InFlight, current.States = r.inFlight, maps.Clone(current.States)
	current.First, current.Gap = packNonEmpty(r.first), packNonEmpty(r.gap)
	return current
}

// progress adds to p the counts, the current bucket, and the findings and buckets since the last call.
func (r *responses) progress(p *shard.Progress) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.CountResponses(r.sum)
	p.Responses = append(slices.Clone(r.sum.Series[r.reportedBuckets:]), r.currentBucket())
	for _, f := range r.sum.Findings[r.reportedFindings:] {
		if len(p.Found) < maxFindings {
			p.Found = append(p.Found, shard.FoundFault{AtMS: f.AtUS / 1000, ID: f.ID, Text: describeFinding(&f)})
		} else {
			p.Unlisted++
		}
	}
	r.reportedBuckets, r.reportedFindings = len(r.sum.Series), len(r.sum.Findings)
}

func describeFinding(f *shard.ResponseFinding) string {
	text := strings.ReplaceAll(string(f.State), "_", " ") + " after " + format.Plural(f.Chunks, "chunk", "chunks")
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
