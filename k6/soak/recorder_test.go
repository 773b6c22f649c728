package soak

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

func newPlan() plan.Plan {
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.BackendURL, p.Runners = "t", "d-", 2, "http://h", 1
	return p
}

func newPlannedRecorder(t *testing.T) *recorder {
	t.Helper()
	r := newRecorder()
	require.NoError(t, r.setPlan(newPlan()))
	return r
}

func newObserver(t *testing.T, r *recorder, id string) *observer {
	t.Helper()
	return newObserverOf(t, r, id, false)
}

// newObserverOf returns an observer. excluded reports whether the script acts on its stream.
func newObserverOf(t *testing.T, r *recorder, id string, excluded bool) *observer {
	t.Helper()
	l, err := r.newLedger(id)
	require.NoError(t, err)
	o := r.observer(l, excluded)
	return &o
}

func (o *observer) openStream(at time.Time, changes ...func(*sseclient.Response)) {
	r := &sseclient.Response{At: at, Header: http.Header{}}
	for _, change := range changes {
		change(r)
	}
	o.opened(at, r)
}

func (o *observer) connect(at time.Time) {
	o.connecting(at)
	o.openStream(at)
}

func (o *observer) endBy(reason sseclient.Reason, at time.Time) {
	o.ledger.CloseRequested(o.recorder.instant(at))
	o.closed(at, sseclient.Close{Reason: reason, Retry: -1})
}

func event(id, data, comment string) *eventstream.Event {
	return &eventstream.Event{ID: []byte(id), HasID: id != "", Data: []byte(data), Comment: []byte(comment)}
}

func (o *observer) event(at time.Time, e *eventstream.Event) {
	o.block(at, &eventstream.Block{Event: *e, HasData: true, HasComment: len(e.Comment) > 0})
}

func shardOf(r *recorder) *shard.Shard {
	s := &shard.Shard{Schema: shard.Schema}
	r.fill(s)
	return writtenShard(s)
}

// writtenShard replaces the ledgers of a shard with records, as in its file.
func writtenShard(s *shard.Shard) *shard.Shard {
	for _, l := range s.Ledgers {
		s.Connections = append(s.Connections, l.Record())
	}
	s.Ledgers = nil
	return s
}

func TestObserverCountsEvents(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	at := r.start.Add(time.Second)
	o.connecting(at)
	o.openStream(at.Add(3 * time.Millisecond))
	at = at.Add(3 * time.Millisecond)
	for _, e := range []*eventstream.Event{
		event("1", "0", ""), event("2", "0", ""), event("2", "0", ""), event("4", "0", ""), event("3", "0", ""), event("5", "zero", ""), event("6", "00", ""),
	} {
		if len(e.ID) > 0 && string(e.ID) != "3" {
			at = at.Add(15 * time.Second)
		}
		o.event(at, e)
	}
	message := event("7", "hello", "")
	message.Name = []byte("chat")
	o.event(at, message)
	namedEvent := event("8", "0", "")
	namedEvent.Name = []byte("message")
	o.event(at.Add(15*time.Second), namedEvent)
	o.endBy(sseclient.ReasonServer, at.Add(16*time.Second))
	s := shardOf(r)
	require.Len(t, s.Connections, 1)
	rec := s.Connections[0]
	require.Equal(t, ledger.Completed, rec.State)
	require.Equal(t, []uint64{5, 1, 1, 2, 0}, []uint64{rec.Received, rec.Duplicated, rec.Reordered, rec.Corrupted, rec.Lost}, "%+v", rec)
	require.Equal(t, 3*time.Millisecond, rec.Connect)
	require.EqualValues(t, 1, s.Connect.Count())
	require.Equal(t, 3*time.Millisecond, s.Connect.Max())
	require.EqualValues(t, 1, s.FirstMessage.Count())
	require.Equal(t, 15*time.Second, s.FirstMessage.Max())
	require.Nil(t, s.Latency)
	require.Equal(t, newPlan(), s.Plan)
}

func TestEndDeterminesTheStateOfTheClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason    sseclient.Reason
		status    int
		retry     time.Duration
		opened    bool
		requested bool
		want      ledger.State
		word      string
	}{
		{sseclient.ReasonServer, 200, -1, true, true, ledger.Completed, "server"},
		{sseclient.ReasonTruncated, 200, -1, true, true, ledger.Completed, "truncated"},
		{sseclient.ReasonReset, 200, -1, true, true, ledger.Completed, "reset"},
		{sseclient.ReasonIdle, 200, -1, true, true, ledger.Unfinished, "idle"},
		{sseclient.ReasonClient, 200, -1, true, true, ledger.Unfinished, "client"},
		{sseclient.ReasonInterrupted, 200, -1, true, false, ledger.Unfinished, "interrupted"},
		{sseclient.ReasonServer, 200, -1, true, false, ledger.Dropped, "server"},
		{sseclient.ReasonServer, 200, time.Second, true, false, ledger.Waiting, "server"},
		{sseclient.ReasonStatus, 503, -1, false, false, ledger.Refused, "status 503"},
		{sseclient.ReasonRefused, 0, time.Second, false, false, ledger.Connecting, "refused"},
	} {
		r := newPlannedRecorder(t)
		o := newObserver(t, r, "d-0")
		at := r.start.Add(time.Second)
		o.connecting(at)
		if c.opened {
			o.openStream(at)
		}
		if c.requested {
			o.ledger.CloseRequested(r.instant(at.Add(time.Second)))
		}
		o.closed(at.Add(2*time.Second), sseclient.Close{Reason: c.reason, Status: c.status, Retry: c.retry})
		rec := shardOf(r).Connections[0]
		require.Equal(t, c.want, rec.State, "%+v", c)
		require.Equal(t, c.word, rec.Reason)
		require.Zero(t, r.open)
	}
}

func TestBucketsCountByTime(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	at := r.start
	o.connect(at)
	o.event(at.Add(15*time.Second), event("1", "0", ""))
	require.Zero(t, r.bucket.Unix%5)
	require.False(t, r.isBucketOver(at))
	require.True(t, r.isBucketOver(at.Add(5*time.Second)))
	r.endBucket(at.Add(16*time.Second), shard.ProcessUsage{RSS: 7, HeapLive: 5, CPUPercent: 3, Goroutines: 9, GCPauseUS: 1000}, nil)
	require.False(t, r.isBucketOver(at.Add(5*time.Second)), "a tick that a stall has delayed must not end the next bucket")
	o.event(at.Add(32*time.Second), event("2", "0", ""))
	o.event(at.Add(32*time.Second), event("2", "x", ""))
	o.closed(at.Add(33*time.Second), sseclient.Close{Reason: sseclient.ReasonServer, Retry: -1})
	r.endBucket(at.Add(34*time.Second), shard.ProcessUsage{}, nil)
	s := shardOf(r)
	require.Len(t, s.Series, 2)
	first, second := s.Series[0], s.Series[1]
	require.Equal(t, []int{1, 1, 0, 1, 0, 0}, []int{first.Open, first.Opened, first.Closed, first.Noops, first.Late, first.Faults})
	require.Equal(t, []int{0, 0, 1, 1, 1, 1}, []int{second.Open, second.Opened, second.Closed, second.Noops, second.Late, second.Faults})
	require.EqualValues(t, 1000, first.GCPauseUS)
	require.EqualValues(t, 7, first.RSS)
	require.EqualValues(t, 5, first.HeapLive)
	h, err := second.Lateness.Unpack()
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, h.Max())
	require.EqualValues(t, 2, s.Lateness.Count(), "the lateness must include the current bucket")
	other := newObserver(t, r, "d-1")
	other.connect(at)
	other.event(at.Add(35*time.Second), event("1", "0", ""))
	require.EqualValues(t, 3, shardOf(r).Lateness.Count())
	p, _ := r.progress()
	require.Equal(t, []int{1, 2, 1}, []int{p.Open, p.Opened, p.Dropped})
	require.EqualValues(t, 3, p.Received)
}

// A late message on a stream on which the script acts is counted, but not compared with the control group.
func TestLateMessagesOfExcludedStreamsAreSeparate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		excluded    []bool // by stream; the first stream gets a message 30 s late, the second 20 s late
		want        *shard.LateMessages
		maxLateness time.Duration
	}{
		"first excluded":  {[]bool{true, false}, &shard.LateMessages{Late: 1}, 20 * time.Second},
		"second excluded": {[]bool{false, true}, &shard.LateMessages{Late: 1}, 30 * time.Second},
		"none excluded":   {[]bool{false, false}, nil, 0},
		"both excluded":   {[]bool{true, true}, &shard.LateMessages{}, 0},
	} {
		r := newPlannedRecorder(t)
		for i, excluded := range c.excluded {
			observed := newObserverOf(t, r, fmt.Sprintf("d-%d", i), excluded)
			observed.connect(r.start)
			observed.event(r.start.Add(time.Duration(45-10*i)*time.Second), event("1", "0", ""))
		}
		r.endBucket(r.start.Add(46*time.Second), shard.ProcessUsage{}, nil)
		r.endBucket(r.start.Add(51*time.Second), shard.ProcessUsage{}, nil)
		s := shardOf(r)
		require.Equal(t, 2, s.Series[0].Late, name)
		require.Nil(t, s.Series[1].Undisturbed, "%s: Undisturbed must be nil in a bucket without late messages", name)
		undisturbed := s.Series[0].Undisturbed
		if undisturbed != nil && undisturbed.Lateness != nil {
			h, err := undisturbed.Lateness.Unpack()
			require.NoError(t, err)
			require.Equal(t, []any{int64(1), c.maxLateness}, []any{int64(h.Count()), h.Max()}, name)
			undisturbed.Lateness = nil
		}
		require.Equal(t, c.want, undisturbed, name)
	}
}

func TestEachVirtualUserMustSetTheSamePlan(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	_, err := r.newLedger("d-0")
	require.ErrorContains(t, err, "call soak.plan or soak.settings in the init context first")
	require.NoError(t, r.setPlan(newPlan()))
	require.NoError(t, r.setPlan(newPlan()), "each virtual user must be able to set the same plan")
	other := newPlan()
	other.NoopInterval = 1
	require.ErrorContains(t, r.setPlan(other), "two different plans")
	other.NoopInterval = 0
	require.ErrorContains(t, r.setPlan(other), "NOOP_INTERVAL must be at least 0.001 seconds, got 0")
	require.InDelta(t, 15, shardOf(r).Plan.NoopInterval, 0)

	open := newPlan()
	open.Connections, open.ConnectionsPerVU = 0, 3
	r = newRecorder()
	require.NoError(t, r.setPlan(open))
	r.planIterations(200)
	require.Equal(t, 600, shardOf(r).Plan.Connections)
	require.NoError(t, r.setPlan(open), "a plan without the number of iterations must equal the completed one")
	r.planIterations(7)
	require.Equal(t, 600, shardOf(r).Plan.Connections)

	// The number of streams may be too small for topics or cuts, but it is not known yet.
	open.ConnectionsPerVU, open.Service, open.Topics, open.PublishRate = 1, "mine", 5, 2
	require.NoError(t, newRecorder().setPlan(open))
	open = newPlan()
	open.Connections, open.Seconds, open.NoopInterval, open.Reconnect, open.CutsPerSecond = 0, 40, 1, true, 4
	require.NoError(t, newRecorder().setPlan(open))
}

// The clocks of two hosts may differ by any amount. Latency relative to the fastest noop is still exact.
func TestLatencyWithDifferentClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, 300 * time.Microsecond, -30 * time.Millisecond, 59 * time.Second, -time.Hour, 400 * 24 * time.Hour} {
		r := newPlannedRecorder(t)
		const n = 2000
		for i := range n { // from slow to fast, so that each noop is the fastest so far
			r.addLatency(skew + time.Duration(n-i)*100*time.Microsecond)
		}
		l := r.latency
		require.Equal(t, (skew + 100*time.Microsecond).Microseconds(), l.MinUS)
		latency := shard.NewHistogram()
		latency.MergeShifted(l.Histogram, -time.Duration(l.OffsetUS+l.MinUS)*time.Microsecond)
		require.EqualValues(t, n, latency.Count())
		require.InDelta(t, 100*time.Millisecond, latency.Quantile(.5), float64(4*time.Millisecond), "skew %v", skew)
		require.InDelta(t, 20*time.Millisecond, latency.Quantile(.1), float64(3*time.Millisecond), "skew %v", skew)
	}
}

func TestSumsOfMetrics(t *testing.T) {
	t.Parallel()
	registry := metrics.NewRegistry()
	counter := registry.MustNewMetric("a_counter", metrics.Counter)
	trend := registry.MustNewMetric("the_trend", metrics.Trend, metrics.Time)
	checks := registry.MustNewMetric("checks", metrics.Rate)
	s := newSums()
	add := func(m *metrics.Metric, v float64, tags *metrics.TagSet) {
		s.add([]metrics.SampleContainer{metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Value: v}})
	}
	for _, v := range []float64{1, 2.5, -4} {
		add(counter, v, registry.RootTagSet())
	}
	for _, v := range []float64{1, 3, math.Inf(1), math.NaN(), math.Inf(-1), 1e300} {
		add(trend, v, registry.RootTagSet())
	}
	for _, v := range []float64{1, 0, 1} {
		add(checks, v, registry.RootTagSet().With("check", "ok?"))
	}
	out := &shard.Shard{}
	s.fill(out)
	require.Equal(t, []shard.ScriptCheck{{Name: "ok?", Passes: 2, Fails: 1}}, out.Checks)
	require.Len(t, out.Metrics, 3)
	require.Equal(t, shard.Metric{Name: "a_counter", Type: "counter", Sum: -.5, Count: 3, Min: -4, Max: 2.5}, out.Metrics[0])
	got := out.Metrics[2]
	require.EqualValues(t, 6, got.Trend.Count())
	require.Equal(t, 2*time.Hour, got.Trend.Max(), "a value above the range must count as the maximum")
	require.False(t, math.IsNaN(got.Sum) || math.IsInf(got.Sum, 0), "JSON must be able to encode the sum")
	add(trend, 7, registry.RootTagSet())
	require.EqualValues(t, 6, got.Trend.Count(), "the shard must contain a copy")
}

// Each of many streams gets a noop per second, with varying lateness. The heap also contains data of earlier tests, so
// the test uses the smallest growth of three measurements.
func TestTallyIsSmall(t *testing.T) {
	const length, connections = 900, 240
	var r *recorder
	var now time.Time
	receive := func(seconds int) {
		for s := range seconds {
			now = now.Add(time.Second)
			for n := range connections {
				lateness := time.Duration(n*5+s%5) * 33 * time.Microsecond
				r.addDelta(ledger.Delta{Counted: true, LatenessCount: 1, Lateness: [2]time.Duration{lateness}}, false, -1, time.Millisecond, true)
			}
			if r.isBucketOver(now) {
				r.endBucket(now, shard.ProcessUsage{RSS: 1, HeapLive: 1}, nil)
			}
		}
	}
	heapSize := func() int64 {
		var m runtime.MemStats
		for range 2 { // pools and finalizers need two collections
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	growth := int64(math.MaxInt64)
	for range 3 {
		r = newRecorder()
		now = r.start
		receive(10)
		before := heapSize()
		receive(length)
		growth = min(growth, heapSize()-before)
		require.GreaterOrEqual(t, len(r.series), length/5)
	}
	require.Less(t, growth, int64(128<<10), "the heap must grow by less than 128 KB")
}

// An allocation per noop would be multiplied by the streams of a runner.
func TestNoopAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	at, n := r.start.Add(time.Second), 0
	o.connect(at)
	b := &eventstream.Block{Event: *event("1", "0", "sent=1732250000000000"), HasData: true, HasComment: true}
	require.Zero(t, testing.AllocsPerRun(8, func() {
		at, n = at.Add(15*time.Second), n+1
		b.ID = append(b.ID[:0], byte('0'+n))
		o.block(at, b)
	}))
	require.Zero(t, o.ledger.Record().Lost)
}
