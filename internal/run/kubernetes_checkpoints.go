package run

import (
	"context"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// checkpointPoll is the time between two readings of the checkpoints in a bucket.
const checkpointPoll = 10 * time.Second

// checkpoints reads the progress of a suite that makes requests from the checkpoints in the bucket. The runners of such
// a suite aggregate no metrics for k6's REST API. The progress is for display; no verdict depends on it.
type checkpoints struct {
	open     func(ctx context.Context) (store.Store, error)
	onReport func(index int, p *shard.Progress)
	poll     time.Duration
	lastUnix map[int]int64 // last reported bucket, by runner
}

// follow reads the checkpoints until ctx ends. Reading uses at most 1/pauseFactor of a core.
func (c *checkpoints) follow(ctx context.Context) {
	var from store.Store
	interval := c.poll
	for {
		select {
		case <-ctx.Done():
			if from != nil {
				_ = from.Close()
			}
			return
		case <-time.After(interval):
		}
		start := time.Now()
		if from == nil {
			from, _ = c.open(ctx) // nil: the next attempt may succeed
		}
		if from != nil && c.read(ctx, from) != nil {
			_ = from.Close()
			from = nil
		}
		interval = max(c.poll, pauseFactor*time.Since(start))
	}
}

// read reports the progress in each checkpoint.
func (c *checkpoints) read(ctx context.Context, from store.Store) error {
	return eachShard(ctx, from, 0, func(_ string, s *shard.Shard) { c.report(s.Runner.Index, s.RequestProgress()) })
}

// report calls onReport with the progress of a runner, without the buckets that are complete and reported.
func (c *checkpoints) report(index int, p shard.Progress) {
	p.Responses = slices.DeleteFunc(p.Responses, func(b shard.ResponseBucket) bool { return b.Unix < c.lastUnix[index] })
	if n := len(p.Responses); n > 0 {
		c.lastUnix[index] = p.Responses[n-1].Unix
	}
	c.onReport(index, &p)
}
