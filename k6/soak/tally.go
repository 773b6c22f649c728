package soak

import (
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A tally holds sums over all connections, as a time series and in all. Its memory grows by some hundred bytes for each bucket of
// five seconds.
type tally struct {
	start time.Time // instants count from it; its monotonic reading is the clock of the run

	mu         sync.Mutex
	open       int
	series     []shard.Bucket // the buckets that are over; never changed, so that a shard can share them
	bucket     shard.Bucket
	recent     *shard.Histogram        // lateness in the present bucket
	recentHeld *shard.Histogram        // of late messages of the streams without a phase; nil: none was late yet
	excluded   map[*ledger.Ledger]bool // those of the streams with a phase
	lateness   *shard.Histogram        // in all
	connect    *shard.Histogram
	firstNoop  *shard.Histogram
	latency    *shard.Latency
	bursts     *shard.Bursts
	streams    streamSums
}

// streamSums are counts of streams of a kind, and of the requests that end streams.
type streamSums struct {
	codings   []shard.Coding   // of streams that were compressed
	redirects []shard.Redirect // of streams to other origins
	shared    *shard.Shared    // of streams over HTTP/2; nil: there were none
	ends      *shard.Ends      // nil: there were none
}

func newTally() tally {
	now := time.Now()
	return tally{
		start: now, bucket: shard.Bucket{Unix: bucketOf(now)},
		recent: shard.NewHistogram(), lateness: shard.NewHistogram(), connect: shard.NewHistogram(), firstNoop: shard.NewHistogram(),
		bursts: shard.NewBursts(),
	}
}

func bucketOf(t time.Time) int64 {
	width := int64(shard.BucketWidth / time.Second)
	return t.Unix() / width * width
}

func (t *tally) instant(at time.Time) ledger.Instant { return at.Sub(t.start) }

// wall returns the wall clock at the start plus the time since, so that a step of the clock leaves no gap in the
// series.
func (t *tally) wall(now time.Time) time.Time { return t.start.Add(now.Sub(t.start)).Round(0) }

func (t *tally) opened(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open++
	t.bucket.Opened++
	t.bucket.ConnectUS += took.Microseconds()
	t.connect.Record(took)
}

func (t *tally) closed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
	t.bucket.Closed++
}

// addGap adds a message by the time since the one before; see shard.Bursts.
func (t *tally) addGap(gap time.Duration, before *uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bursts.Add(gap, before)
}

// addServer counts a stream by the header Server.
func (t *tally) addServer(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bursts.AddServer(server, 1)
}

// noop adds one arrival to the sums. first is the time since the headers for the first noop
// of a stream, else negative; latency is receive − send where hasLatency. excluded: the stream is not held.
func (t *tally) noop(a ledger.Arrival, excluded, faulty bool, first time.Duration, latency time.Duration, hasLatency bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.Counted {
		t.bucket.Noops++
	}
	if faulty {
		t.bucket.Faults++
	}
	t.bucket.Late += a.Late
	for _, late := range a.Lateness[:a.N] {
		t.recent.Record(late)
		t.lateness.Record(late)
	}
	if a.Late > 0 && !excluded {
		t.countHeldLate(&a)
	}
	if first >= 0 {
		t.firstNoop.Record(first)
	}
	if hasLatency {
		t.addLatency(latency)
	}
}

// countHeldLate counts late messages of a stream on which no phase acts.
func (t *tally) countHeldLate(a *ledger.Arrival) {
	if t.recentHeld == nil {
		t.recentHeld = shard.NewHistogram()
	}
	if t.bucket.Undisturbed == nil {
		t.bucket.Undisturbed = &shard.Late{}
	}
	t.bucket.Undisturbed.Late += a.Late
	for _, late := range a.Lateness[:a.N] {
		t.recentHeld.Record(late)
	}
}

// latencyStep is the distance from zero at which latencies are kept if the clocks differ. The buckets of a
// histogram are 0.8 % of a value wide, so values have to stay near zero.
const latencyStep = 10 * time.Millisecond

// addLatency keeps latencies as they are if the clocks agree. Otherwise it adds an offset to them, which
// it changes whenever a noop is faster than all before.
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
		lower := latencyStep - latency
		shifted := shard.NewHistogram()
		shifted.MergeShifted(t.latency.Histogram, lower-offset)
		t.latency.Histogram, offset = shifted, lower.Truncate(time.Microsecond)
		t.latency.OffsetUS = lower.Microseconds()
	}
	t.latency.Histogram.Record(latency + offset)
}

func (t *tally) isBucketOver(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bucketOf(t.wall(now)) != t.bucket.Unix
}

// endBucket ends the present bucket. Its histogram is kept with coarser buckets, since a run of hours has thousands
// of them.
func (t *tally) endBucket(now time.Time, s shard.Process, control *controlGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := bucketOf(t.wall(now))
	t.bucket.Open, t.bucket.Process, t.bucket.Control = t.open, s, control.endBucket(now)
	if t.recent.Count() > 0 {
		t.bucket.Lateness = t.recent.PackCoarse()
		t.recent.Reset()
	}
	t.bucket.Undisturbed = t.endHeldBucket()
	t.series = append(t.series, t.bucket)
	t.bucket = shard.Bucket{Unix: next}
}

// endHeldBucket returns the late messages of streams without a phase in the bucket that ends; nil if all streams are
// such, or none was late.
func (t *tally) endHeldBucket() *shard.Late {
	held := t.bucket.Undisturbed
	if held != nil {
		held.LateBy = t.recentHeld.PackCoarse()
		t.recentHeld.Reset()
	}
	switch {
	case len(t.excluded) == 0 || t.bucket.Late == 0:
		return nil
	case held == nil:
		return &shard.Late{}
	}
	return held
}

// fill copies the sums into a shard.
func (t *tally) fill(s *shard.Shard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Codings, s.Redirects = slices.Clone(t.streams.codings), slices.Clone(t.streams.redirects)
	if t.streams.shared != nil {
		shared := *t.streams.shared
		s.Shared = &shared
	}
	s.Ends = t.streams.ends.Copy()
	if t.bursts.Messages > 0 {
		s.Bursts = shard.NewBursts()
		s.Bursts.Merge(t.bursts)
	}
	s.Series = t.series[:len(t.series):len(t.series)]
	s.Lateness, s.Connect, s.FirstNoop = t.lateness.Copy(), t.connect.Copy(), t.firstNoop.Copy()
	if t.latency != nil {
		l := *t.latency
		l.Histogram = t.latency.Histogram.Copy()
		s.Latency = &l
	}
}

// exclude records that a phase acts on the stream of a ledger.
func (t *tally) exclude(l *ledger.Ledger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.excluded == nil {
		t.excluded = map[*ledger.Ledger]bool{}
	}
	t.excluded[l] = true
}
