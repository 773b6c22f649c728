package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func bucket(unix int64, noops int, late time.Duration) shard.Bucket {
	h := shard.NewHistogram()
	h.Record(late)
	return shard.Bucket{Unix: unix, Open: 10, Noops: noops, Lateness: h.Pack()}
}

func TestBucketsOfAllRunnersAddUp(t *testing.T) {
	t.Parallel()
	var w Watch
	for unix := int64(1000); unix <= 1200; unix += 5 {
		for _, noops := range []int{1, 2} { // each bucket is reported twice, first incomplete
			for runner := 1; runner <= 2; runner++ {
				w.Add(runner, &shard.Progress{Buckets: []shard.Bucket{bucket(unix, noops, time.Duration(runner)*time.Millisecond)}})
			}
		}
	}
	series := w.Series()
	require.Len(t, series, 41)
	for i, b := range series {
		require.Equal(t, shard.Bucket{Unix: 1000 + 5*int64(i), Open: 20, Noops: 4, Lateness: b.Lateness}, b)
		h, err := b.Lateness.Unpack()
		require.NoError(t, err)
		require.EqualValues(t, 2, h.Count())
	}
	require.LessOrEqual(t, len(w.recent), int(settleTime/shard.BucketWidth)+1)
	r := w.Runners()
	require.Len(t, r[0].Late, latenessBuckets)
	require.InDelta(t, time.Millisecond, r[0].Late[3], float64(20*time.Microsecond))
}

func TestTotalSumsTheLastReportsOfRunners(t *testing.T) {
	t.Parallel()
	var w Watch
	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	for runner := 1; runner <= 3; runner++ {
		w.Add(runner, &shard.Progress{Open: 1, Counts: ledger.Counts{Received: 5}})
		w.Add(runner, &shard.Progress{Open: 2, Counts: ledger.Counts{Received: 10, Late: 1}, Lateness: h.Pack()})
	}
	w.Add(3, nil)
	sum, lateness := w.Total()
	require.Equal(t, shard.Progress{Open: 4, Counts: ledger.Counts{Received: 30, Late: 3}}, sum, "a runner that has ended has no open stream")
	require.EqualValues(t, 3, lateness.Count())
}

// A runner reports its last bucket of responses each second. The buckets of several runners add up.
func TestResponsesOfAllRunnersAddUp(t *testing.T) {
	t.Parallel()
	var w Watch
	require.Nil(t, w.Responses())
	for runner := 1; runner <= 2; runner++ {
		for _, states := range []map[ledger.ResponseState]int64{{ledger.ResponseComplete: 1}, {ledger.ResponseComplete: 3, ledger.ResponseTruncated: 1}} {
			w.Add(runner, &shard.Progress{Responses: []shard.ResponseBucket{{Unix: 1000, Started: 4, States: states}}})
		}
		w.Add(runner, &shard.Progress{Responses: []shard.ResponseBucket{{Unix: 1005, Started: 2, InFlight: 2}}})
	}
	got := w.Responses()
	want := map[ledger.ResponseState]int64{ledger.ResponseComplete: 6, ledger.ResponseTruncated: 2}
	require.Equal(t, want, got.States)
	require.Equal(t, []shard.ResponseBucket{
		{Unix: 1000, Started: 8, States: want}, {Unix: 1005, Started: 4, InFlight: 4, States: map[ledger.ResponseState]int64{}},
	}, got.Series)
}

func TestFindingsAreListedOnce(t *testing.T) {
	t.Parallel()
	var w Watch
	count := 0
	for i := range maxFindings + 10 {
		w.Add(1, &shard.Progress{Found: []shard.FoundFault{{AtMS: int64(i), ID: fmt.Sprint(i), Text: "1 missed"}}})
		if i%7 == 0 {
			var news []Finding
			news, count, _ = w.Findings(count)
			require.Len(t, news, min(i+1, 7))
			require.Equal(t, fmt.Sprint(i), news[len(news)-1].ID)
		}
	}
	w.Note("action deploy starts")
	w.Add(2, &shard.Progress{Unlisted: 30})
	news, next, unlisted := w.Findings(0)
	require.Len(t, news, maxFindings)
	require.Equal(t, []int{maxFindings + 11, 30}, []int{next, unlisted})
	require.Equal(t, "action deploy starts", news[len(news)-1].Text)
}

func TestRunnerHealth(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, r := range map[string]Runner{
		"starting":           {},
		"ok":                 {ReportedAt: now},
		"ended":              {ReportedAt: now, Ended: true},
		"silent for 20 s":    {ReportedAt: now.Add(-20 * time.Second)},
		"no space left":      {ReportedAt: now, Progress: shard.Progress{Trouble: "no space left"}},
		"stalled for 700 ms": {ReportedAt: now, Process: shard.Process{StallMS: 700}},
	} {
		text, healthy := r.Health(now)
		require.Equal(t, want, text)
		require.Equal(t, want == "starting" || want == "ok" || want == "ended", healthy)
	}
}
