package soak

import (
	"sync"
	"time"
)

// mostWait is the total time for which a call of hold with lifetimes waits for streams to end before it opens the next ones. It
// limits the delay of connects if the service ends streams late or never, so that every planned stream opens within the run.
const mostWait = 5 * time.Second

// openInTurn opens the streams one after the other, each when the lifetime of the one before is over and it has ended.
func (h *holding) openInTurn() {
	var ends sync.WaitGroup
	left := mostWait
	sleep(h.ctx, milli(h.Delay))
	for i, s := range h.streams {
		if h.ctx.Err() != nil {
			break
		}
		s.stream.Open()
		s.live(milli(h.Lifetimes[i]))
		requestedAt := time.Now()
		ends.Go(func() { h.ender.end(s) })
		select {
		case <-s.treatment.ended:
		case <-time.After(left):
		case <-h.ctx.Done():
		}
		left = max(left-time.Since(requestedAt), time.Millisecond)
	}
	ends.Wait()
	h.allAsked()
}

// live waits until the stream was open for its lifetime, or has ended. One that never opens takes as long.
func (s *heldStream) live(lifetime time.Duration) {
	t, ended := s.treatment, s.treatment.ended
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
