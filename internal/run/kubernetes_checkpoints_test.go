package run

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// Runners of a suite that makes requests have no counters in k6's REST API: their progress follows from the checkpoints.
func TestRequestProgressFollowsCheckpoints(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(index int, abandoned int64, buckets ...int64) {
		responses := shard.NewResponses()
		responses.States[ledger.ResponseAbandoned], responses.States[ledger.ResponseTruncated] = abandoned, 1
		for _, unix := range buckets {
			responses.Series = append(responses.Series, shard.ResponseBucket{Unix: unix, Started: 1})
		}
		s := &shard.Shard{
			Schema: shard.Schema, Connect: shard.NewHistogram(), FirstNoop: shard.NewHistogram(), Lateness: shard.NewHistogram(), Responses: responses,
			Runner: shard.Runner{TestID: "t", Index: index, Segment: "1/2:1", Script: "s.js", State: shard.Running},
		}
		require.NoError(t, shard.Write(filepath.Join(folder, shard.FileName(s.Runner)), s))
	}
	write(1, 4, 100, 105)
	write(2, 5, 100)
	var watch live.Watch
	reports := make(chan []shard.ResponseBucket, 1000)
	c := &checkpoints{
		open: func(ctx context.Context) (store.Store, error) { return store.Open(ctx, folder) },
		onReport: func(index int, p *shard.Progress) {
			watch.Add(index, p)
			if index == 1 {
				reports <- p.Responses
			}
		},
		poll: time.Millisecond, lastUnix: map[int]int64{},
	}
	ctx, stop := context.WithCancel(t.Context())
	var reader sync.WaitGroup
	reader.Go(func() { c.follow(ctx) })
	t.Cleanup(func() { stop(); reader.Wait() })
	requests := func(requests, failed int64) func() bool {
		return func() bool { sum, _ := watch.Total(); return sum.Requests == requests && sum.Failed == failed }
	}
	require.Eventually(t, requests(11, 2), time.Minute, time.Millisecond)
	require.Len(t, <-reports, 2)
	write(1, 8, 100, 105, 110)
	require.Eventually(t, requests(15, 2), time.Minute, time.Millisecond)
	stop()
	reader.Wait()
	close(reports)
	for buckets := range reports {
		require.NotEqual(t, int64(100), buckets[0].Unix, "a complete bucket is reported once")
	}
}
