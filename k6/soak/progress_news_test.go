package soak

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

func TestFindingsAreReportedOnce(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	var n progressNews
	require.Empty(t, n.report(r).Found)
	o := newObserver(t, r, "d-0")
	o.connect(r.start)
	o.event(r.start.Add(15*time.Second), event("1", "0", ""))
	o.event(r.start.Add(30*time.Second), event("2", "0", ""))
	o.event(r.start.Add(75*time.Second), event("5", "0", ""))
	p := n.report(r)
	require.Len(t, p.Found, 1)
	require.Equal(t, []string{"d-0", "2 missed"}, []string{p.Found[0].ID, p.Found[0].Text})
	require.Empty(t, n.report(r).Found, "a loss must be reported once")
	o.closed(r.start.Add(76*time.Second), sseclient.Close{Reason: sseclient.ReasonReset, Retry: -1})
	p = n.report(r)
	require.Len(t, p.Found, 1)
	require.Contains(t, p.Found[0].Text, "dropped: reset")
}

// A loss by number is reported, then withdrawn, because the ids are not sequence numbers. A later loss by the clock
// must still be reported.
func TestLossAfterWithdrawnLossIsReported(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	o.connect(r.start)
	slot, id := 0, 0
	noop := func(skip int) {
		slot, id = slot+1, id+skip
		o.event(r.start.Add(time.Duration(slot)*15*time.Second), event(strconv.Itoa(id), "0", ""))
	}
	var n progressNews
	newFindings := func() (texts []string) {
		for _, f := range n.report(r).Found {
			texts = append(texts, f.Text)
		}
		return texts
	}
	for range 5 {
		noop(1)
	}
	noop(2)
	require.Equal(t, []string{"1 missed"}, newFindings())
	for range 20 {
		noop(2)
	}
	require.Empty(t, newFindings())
	slot++
	for range 3 {
		noop(2)
	}
	require.Equal(t, []string{"1 missed"}, newFindings())
}

// A stream on which the script acts (vanish, slow) does not count as dropped by the service, and the messages that its
// client missed are not faults.
func TestPlannedEndsAreNotReported(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	for id, excluded := range map[string]bool{"d-0": true, "d-1": true, "d-2": false} {
		observed := newObserverOf(t, r, id, excluded)
		observed.connect(r.start)
		observed.event(r.start.Add(15*time.Second), event("1", "0", ""))
		observed.event(r.start.Add(60*time.Second), event("4", "0", ""))
		observed.closed(r.start.Add(61*time.Second), sseclient.Close{Reason: sseclient.ReasonCut, Retry: -1})
	}
	var n progressNews
	p := n.report(r)
	require.Equal(t, []int{3, 1, 2}, []int{p.Opened, p.Dropped, p.DroppedByScript})
	require.Equal(t, []uint64{6, 2}, []uint64{p.Received, p.Missed()})
	require.Len(t, p.Found, 1)
	require.Equal(t, "d-2", p.Found[0].ID)
	p.Add(p)
	require.Equal(t, []int{2, 4}, []int{p.Dropped, p.DroppedByScript})
	all, _ := r.progress()
	require.Equal(t, 3, all.Dropped, "the metrics must count all streams")
}

func TestFindingsOfOneSecondAreBounded(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	for i := range maxFindings + 5 {
		o := newObserver(t, r, string(rune('a'+i)))
		o.connect(r.start)
		o.closed(r.start.Add(time.Second), sseclient.Close{Reason: sseclient.ReasonReset, Retry: -1})
	}
	var n progressNews
	p := n.report(r)
	require.Len(t, p.Found, maxFindings)
	require.Equal(t, 5, p.Unlisted)
}

func TestSeriesIsReportedOnce(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	o.connect(r.start)
	var n progressNews
	first := n.report(r).Buckets
	require.Len(t, first, 1, "the first line of progress must have the current bucket")
	require.Equal(t, 1, first[0].Open)
	o.event(r.start.Add(15*time.Second), event("1", "0", ""))
	repeated := n.report(r).Buckets
	require.Len(t, repeated, 1)
	require.Equal(t, 1, repeated[0].Noops)
	require.NotNil(t, repeated[0].Lateness)
	r.endBucket(r.start.Add(16*time.Second), shard.ProcessUsage{RSS: 7}, nil)
	next := n.report(r).Buckets
	require.Len(t, next, 2)
	require.Equal(t, []uint64{7, 0}, []uint64{next[0].RSS, next[1].RSS})
	require.Len(t, n.report(r).Buckets, 1)
}

// The points of a short run cover each second, even during a stall, and have the same counts as the series.
func TestPointsOfAShortRun(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	r.startPoints()
	o := newObserver(t, r, "d-0")
	o.connect(r.start)
	var n progressNews
	require.Len(t, n.report(r).Points, 1)
	second := func(n int) time.Time { return r.start.Truncate(time.Second).Add(time.Duration(n) * time.Second) }
	r.endPoints(second(1), shard.ProcessUsage{RSS: 5})
	o.event(second(1).Add(15*time.Second), event("1", "0", ""))
	r.endPoints(second(4), shard.ProcessUsage{RSS: 7})
	r.endPoints(second(4), shard.ProcessUsage{RSS: 8})
	points := shardOf(r).Points
	require.Len(t, points, 4)
	for i, p := range points {
		require.Equal(t, points[0].Unix+int64(i), p.Unix)
		require.Equal(t, 1, p.Open)
	}
	require.Equal(t, []int{1, 0, 0, 0}, []int{points[0].Opened, points[1].Opened, points[2].Opened, points[3].Opened})
	require.Equal(t, []int{0, 1, 0, 0}, []int{points[0].Noops, points[1].Noops, points[2].Noops, points[3].Noops})
	require.NotNil(t, points[1].Lateness)
	require.Nil(t, points[2].Lateness)
	require.Equal(t, []uint64{5, 7, 7, 7}, []uint64{points[0].RSS, points[1].RSS, points[2].RSS, points[3].RSS})
	news := n.report(r)
	require.Empty(t, news.Buckets)
	require.Len(t, news.Points, 5)
	require.Len(t, n.report(r).Points, 1)
	r.endBucket(second(5), shard.ProcessUsage{}, nil)
	require.Equal(t, []int{1, 1}, []int{shardOf(r).Series[0].Opened, shardOf(r).Series[0].Noops})
	r.endPoints(second(1_000_000), shard.ProcessUsage{})
	require.Len(t, shardOf(r).Points, shard.MaxPoints, "a shard must have no more points than its readers accept")
}

// A silent stream has no missed messages before its next noop, so silence is reported separately. Otherwise a hanging
// service would show no fault.
func TestSilentStreamIsUndecided(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	o.connect(r.start)
	o.event(r.start.Add(15*time.Second), event("1", "0", ""))
	l := r.ledgers[0].Sums()
	for after, want := range map[time.Duration]uint64{15 * time.Second: 0, 30 * time.Second: 0, 31500 * time.Millisecond: 1, 62 * time.Second: 3} {
		require.Equal(t, want, undecidedNoops(r.instant(r.start.Add(after)), &r.config)(l.LastAt), after)
	}
}

func TestProgressAllocatesNothingPerStream(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	_, r := newVU(t)
	require.NoError(t, r.setPlan(newPlan()))
	allocations := func(streams int) float64 {
		for len(r.ledgers) < streams {
			_, err := r.newLedger("d-0")
			require.NoError(t, err)
		}
		return testing.AllocsPerRun(10, func() { r.progress() })
	}
	require.InDelta(t, allocations(1), allocations(1000), 10)
}
