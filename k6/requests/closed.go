package requests

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// closed shares requests out among the lanes: a new one as soon as one has its answer.
func (s *stage) closed() {
	n, tuple := s.share(s.concurrency)
	if n == 0 {
		return
	}
	requests := tuple.ScaleInt64(s.requests)
	if s.requests > 0 {
		n = int(min(int64(n), requests))
	}
	end := s.ctx
	if s.length > 0 {
		var stop context.CancelFunc
		end, stop = context.WithDeadline(s.ctx, s.began.Add(s.length))
		defer stop()
	}
	var started, turns atomic.Int64
	var working sync.WaitGroup
	for range n {
		working.Go(func() {
			l := s.newLane()
			for s.ctx.Err() == nil && (s.length == 0 || time.Since(s.began) < s.length) {
				i := turns.Add(1)
				if s.requests > 0 && i > requests || !s.allowed(end) {
					return
				}
				started.Add(1)
				now := time.Now()
				x := l.do(s.operations[(i-1)%int64(len(s.operations))], now, now.Add(s.timeout))
				s.note(&x)
			}
		})
	}
	working.Wait()
	s.drop(max(requests-started.Load(), 0))
}

// allowed waits for k6's --rps. It returns false if no request is allowed before ctx is done.
func (s *stage) allowed(ctx context.Context) bool {
	return s.state.RPSLimit == nil || s.state.RPSLimit.Wait(ctx) == nil
}
