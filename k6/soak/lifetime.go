package soak

import (
	"sync"
	"time"
)

// maxWait limits the total time for which a call to hold with lifetimes waits for the ends of streams before it opens the
// next ones. Thus every planned stream opens within the run, even if the service ends streams late or never.
const maxWait = 5 * time.Second

// openByLifetime opens the streams one after the other, each after the end of the previous one. It requests the end of
// each after its lifetime. maxWait limits the waits for these ends.
func (h *holding) openByLifetime() {
	var ends sync.WaitGroup
	remaining := maxWait
	sleep(h.ctx, milli(h.Delay))
	for i, s := range h.streams {
		s.stream.Open()
		if h.ctx.Err() != nil {
			continue // the stream ends at once; the iteration ends after all streams have ended
		}
		s.awaitLifetime(milli(h.Lifetimes[i]))
		requestedAt := time.Now()
		ends.Go(func() { h.ender.end(s) })
		select {
		case <-s.phase.ended:
		case <-time.After(remaining):
		case <-h.ctx.Done():
		}
		remaining = max(remaining-time.Since(requestedAt), time.Millisecond)
	}
	ends.Wait()
	h.noteEndsRequested()
}

// awaitLifetime waits until the stream has been open for its lifetime, or has ended. If the stream ends without having
// opened, awaitLifetime still waits for the lifetime.
func (s *holdStream) awaitLifetime(lifetime time.Duration) {
	ended := s.phase.ended
	select {
	case <-s.phase.headers:
	case <-ended:
		ended = nil
	case <-s.holding.ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(lifetime):
	case <-s.holding.ctx.Done():
	}
}
