package run

import (
	"context"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// checkpointPoll is the time between two readings of the checkpoints in a bucket.
const checkpointPoll = 10 * time.Second

// checkpoints has the progress of a suite that makes requests, from the checkpoints in the bucket. The runners of such a suite
// aggregate no metrics for k6's REST API. The progress is for display; no verdict depends on it.
type checkpoints struct {
	open     func(ctx context.Context) (store.Store, error)
	onReport func(index int, p *shard.Progress)
	poll     time.Duration

	mu   sync.Mutex
	last map[int]shard.Progress // by runner
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

// read notes the progress in each checkpoint.
func (c *checkpoints) read(ctx context.Context, from store.Store) error {
	return eachShard(ctx, from, 0, func(_ string, s *shard.Shard) { c.note(s.Runner.Index, s.RequestProgress()) })
}

// note records the progress of a runner, and calls onReport with it and its new buckets.
func (c *checkpoints) note(index int, p shard.Progress) {
	c.mu.Lock()
	previous := c.last[index].Responses
	if c.last == nil {
		c.last = map[int]shard.Progress{}
	}
	c.last[index] = p
	c.mu.Unlock()
	for len(previous) > 0 && len(p.Responses) > 0 && p.Responses[0].Unix < previous[len(previous)-1].Unix {
		p.Responses = p.Responses[1:]
	}
	c.onReport(index, &p)
}

// progress returns the sum of the last checkpoints.
func (c *checkpoints) progress() (sum shard.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.last {
		sum.Add(p)
	}
	return sum
}
