package soak

import (
	"sync"
	"time"
)

// maxWait is the total time for which a call of hold with lifetimes waits for streams to end before it opens the next
// ones. It limits the delay of connects if the service ends streams late or never, so that every planned stream opens
// within the run.
const maxWait = 5 * time.Second

// openByLifetime opens the streams one after the other, each when the lifetime of the one before is over and it has ended.
func (h *holding) openByLifetime() {
	var ends sync.WaitGroup
	left := maxWait
	sleep(h.ctx, milli(h.Delay))
	for i, s := range h.streams {
		if h.ctx.Err() != nil {
			break
		}
		s.stream.Open()
		s.awaitLifetime(milli(h.Lifetimes[i]))
		requestedAt := time.Now()
		ends.Go(func() { h.ender.end(s) })
		select {
		case <-s.phase.ended:
		case <-time.After(left):
		case <-h.ctx.Done():
		}
		left = max(left-time.Since(requestedAt), time.Millisecond)
	}
	ends.Wait()
	h.endsRequested()
}

// awaitLifetime waits until the stream was open for its lifetime, or has ended. One that never opens takes as long.
func (s *holdStream) awaitLifetime(lifetime time.Duration) {
	t, ended := s.phase, s.phase.ended
	select {
	case <-t.headers:
	case <-t.ended:
		ended = nil
	case <-s.holding.ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(lifetime):
	case <-s.holding.ctx.Done():
	}
}
