package soak

import (
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A tally has the sums of all streams, in total and as a time series. Its memory grows by a few hundred bytes per
// bucket of five seconds.
type tally struct {
	start time.Time // start of all instants; its monotonic reading is the clock of the run

	mu                  sync.Mutex
	open                int
	series              []shard.Bucket // ended buckets; append-only, so that a shard can share them
	bucket              shard.Bucket
	points              []shard.Bucket // ended points; append-only, like series
	point               shard.Bucket
	pointLateness       *shard.Histogram        // in the current point; nil: the run is not short
	recent              *shard.Histogram        // lateness in the current bucket
	undisturbedLateness *shard.Histogram        // of late messages on streams without a phase, in the current bucket; nil: none yet
	excluded            map[*ledger.Ledger]bool // ledgers of streams with a phase; nil: none
	lateness            *shard.Histogram        // of the whole run
	connect             *shard.Histogram
	firstNoopDelay      *shard.Histogram
	latency             *shard.Latency
	bursts              *shard.Bursts
	streams             streamSums
}

// streamSums has counts of special streams, and of the requests that end streams.
type streamSums struct {
	codings   []shard.Coding     // of compressed streams
	redirects []shard.Redirect   // of streams to other origins
	http2     *shard.HTTP2       // of HTTP/2 streams; nil: none
	ends      *shard.EndRequests // nil: none
}

// addHTTP2 counts an HTTP/2 stream. It also counts the connection of the stream if first is true.
func (s *streamSums) addHTTP2(first bool) {
	if s.http2 == nil {
		s.http2 = new(shard.HTTP2)
	}
	s.http2.Streams++
	if first {
		s.http2.Connections++
	}
}

func newTally() tally {
	now := time.Now()
	return tally{
		start: now, bucket: shard.Bucket{Unix: bucketOf(now)}, point: shard.Bucket{Unix: now.Unix()},
		recent: shard.NewHistogram(), lateness: shard.NewHistogram(), connect: shard.NewHistogram(), firstNoopDelay: shard.NewHistogram(),
		bursts: shard.NewBursts(),
	}
}

// bucketOf returns the start of the bucket that contains a time, as a Unix time in seconds.
func bucketOf(t time.Time) int64 {
	width := int64(shard.BucketWidth / time.Second)
	return t.Unix() / width * width
}

func (t *tally) instant(at time.Time) ledger.Instant { return at.Sub(t.start) }

// wall returns the wall clock at the start plus the elapsed time, so a change of the clock leaves no gap in the series.
func (t *tally) wall(now time.Time) time.Time { return t.start.Add(now.Sub(t.start)).Round(0) }

// addStream counts a stream that has opened. duration is the time that its connection attempt took.
func (t *tally) addStream(duration time.Duration, r *sseclient.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	t.count(func(b *shard.Bucket) {
		b.Opened++
		b.ConnectUS += duration.Microseconds()
	})
	t.connect.Record(duration)
	if server := r.Header.Get("Server"); server != "" {
		t.bursts.AddServer(server, 1)
	}
	if r.OtherOrigin {
		t.streams.redirects = shard.AddRedirect(t.streams.redirects, sseclient.Origin(r.URL))
	}
	if r.HTTP2 {
		t.streams.addHTTP2(r.FirstOnConnection)
	}
}

func (t *tally) removeStream() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.count(func(b *shard.Bucket) { b.Closed++ })
}

func (t *tally) count(change func(b *shard.Bucket)) {
	change(&t.bucket)
	change(&t.point)
}

// addGap counts a message by the time since the previous one; see shard.Bursts.
func (t *tally) addGap(gap time.Duration, previous *uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bursts.Add(gap, previous)
}

// addDelta adds a message to the sums. excluded reports whether a phase acts on the stream. first is the time from the
// headers to the first message of a stream; negative for later messages. latency is the time between send and receipt;
// it counts only if hasLatency is true.
func (t *tally) addDelta(delta ledger.Delta, excluded bool, first time.Duration, latency time.Duration, hasLatency bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(func(b *shard.Bucket) {
		if delta.Counted {
			b.Noops++
		}
		b.Faults += clamp.Int(delta.Faults)
		b.Late += delta.Late
	})
	for _, lateness := range delta.Lateness[:delta.LatenessCount] {
		t.recent.Record(lateness)
		t.lateness.Record(lateness)
		if t.pointLateness != nil {
			t.pointLateness.Record(lateness)
		}
	}
	if delta.Late > 0 && !excluded {
		t.countUndisturbedLate(&delta)
	}
	if first >= 0 {
		t.firstNoopDelay.Record(first)
	}
	if hasLatency {
		t.addLatency(latency)
	}
}

func (t *tally) countUndisturbedLate(delta *ledger.Delta) {
	if t.undisturbedLateness == nil {
		t.undisturbedLateness = shard.NewHistogram()
	}
	if t.bucket.Undisturbed == nil {
		t.bucket.Undisturbed = &shard.LateMessages{}
	}
	t.bucket.Undisturbed.Late += delta.Late
	for _, lateness := range delta.Lateness[:delta.LatenessCount] {
		t.undisturbedLateness.Record(lateness)
	}
}

// latencyStep is the value to which the smallest latency is shifted if the clocks differ. The buckets of a histogram
// are 0.8 % of a value wide, so values must stay near zero.
const latencyStep = 10 * time.Millisecond

// addLatency records a latency. If the first latency is negative or longer than a second, the clocks differ, and
// addLatency adds an offset to all latencies. It increases the offset whenever the sum would be negative.
func (t *tally) addLatency(latency time.Duration) {
	if t.latency == nil {
		t.latency = &shard.Latency{MinUS: latency.Microseconds(), Histogram: shard.NewHistogram()}
		if latency < 0 || latency > time.Second {
			t.latency.OffsetUS = (latencyStep - latency).Microseconds()
		}
	}
	t.latency.MinUS = min(t.latency.MinUS, latency.Microseconds())
	offset := time.Duration(t.latency.OffsetUS) * time.Microsecond
	if latency+offset < 0 {
		newOffset := latencyStep - latency
		histogram := shard.NewHistogram()
		histogram.MergeShifted(t.latency.Histogram, newOffset-offset)
		t.latency.Histogram, offset = histogram, newOffset.Truncate(time.Microsecond)
		t.latency.OffsetUS = newOffset.Microseconds()
	}
	t.latency.Histogram.Record(latency + offset)
}

func (t *tally) addMisrouted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(func(b *shard.Bucket) { b.Faults++ })
}

// isBucketOver reports whether the current bucket has ended. After a stall, now may be the time of a delayed tick,
// which precedes the start of the current bucket.
func (t *tally) isBucketOver(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bucketOf(t.wall(now)) > t.bucket.Unix
}

// endBucket ends the current bucket. It stores a coarse histogram, because a run of hours has thousands of buckets.
func (t *tally) endBucket(now time.Time, s shard.ProcessUsage, control *controlGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := bucketOf(t.wall(now))
	t.bucket.Open, t.bucket.ProcessUsage, t.bucket.Control = t.open, s, control.endBucket(now)
	t.bucket.Lateness = packNonEmpty(t.recent)
	t.recent.Reset()
	t.bucket.Undisturbed = t.endUndisturbedBucket()
	t.series = append(t.series, t.bucket)
	t.bucket = shard.Bucket{Unix: next}
}

// endUndisturbedBucket returns the late messages of streams without a phase in the ended bucket. It returns nil if no
// stream has a phase or no message was late.
func (t *tally) endUndisturbedBucket() *shard.LateMessages {
	undisturbed := t.bucket.Undisturbed
	if undisturbed != nil {
		undisturbed.Lateness = t.undisturbedLateness.PackCoarse()
		t.undisturbedLateness.Reset()
	}
	switch {
	case len(t.excluded) == 0 || t.bucket.Late == 0:
		return nil
	case undisturbed == nil:
		return &shard.LateMessages{}
	}
	return undisturbed
}

func (t *tally) fill(s *shard.Shard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Codings, s.Redirects = slices.Clone(t.streams.codings), slices.Clone(t.streams.redirects)
	if t.streams.http2 != nil {
		counts := *t.streams.http2
		s.HTTP2 = &counts
	}
	s.EndRequests = t.streams.ends.Copy()
	if t.bursts.Messages > 0 {
		s.Bursts = shard.NewBursts()
		s.Bursts.Merge(t.bursts)
	}
	s.Series, s.Points = slices.Clip(t.series), slices.Clip(t.points)
	s.Lateness, s.Connect, s.FirstMessage = t.lateness.Copy(), t.connect.Copy(), t.firstNoopDelay.Copy()
	if t.latency != nil {
		l := *t.latency
		l.Histogram = t.latency.Histogram.Copy()
		s.Latency = &l
	}
}

func (t *tally) exclude(l *ledger.Ledger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.excluded == nil {
		t.excluded = map[*ledger.Ledger]bool{}
	}
	t.excluded[l] = true
}
