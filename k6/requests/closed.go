package requests

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// closed distributes requests among lanes. A lane makes its next request as soon as the previous one has ended.
func (s *stage) closed() {
	n, tuple := s.share()
	if n == 0 {
		return
	}
	requests := tuple.ScaleInt64(s.requests)
	if s.requests > 0 {
		n = int(min(int64(n), requests))
	}
	var end time.Time // zero: the stage ends with its last request
	if s.duration > 0 {
		end = s.start.Add(s.duration)
	}
	var started, turns atomic.Int64
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			l := s.newLane()
			for s.ctx.Err() == nil && (end.IsZero() || time.Now().Before(end)) {
				i := turns.Add(1)
				if s.requests > 0 && i > requests || !s.awaitRPS(end) {
					return
				}
				started.Add(1)
				now := time.Now()
				x := l.do(s.operations[(i-1)%int64(len(s.operations))], now, now.Add(s.timeout))
				s.note(&x)
			}
		})
	}
	workers.Wait()
	s.drop(max(requests-started.Load(), 0))
}

// awaitRPS waits until k6's --rps allows a request. It returns false if the stage is interrupted before that, or if the
// wait would last beyond end. A zero end is no limit.
func (s *stage) awaitRPS(end time.Time) bool {
	if s.state.RPSLimit == nil {
		return true
	}
	ctx := s.ctx
	if !end.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, end)
		defer stop()
	}
	return s.state.RPSLimit.Wait(ctx) == nil
}
