package sse

import (
	"errors"
	"math"
	"time"

	"go.k6.io/k6/v2/js/common"
)

// slowTick is how often a stream is read that is read slowly.
const slowTick = 250 * time.Millisecond

var errNotSlow = errors.New("streams can be read slowly on Linux only")

// slow has the open stream read at most so many bytes per second from now on, 0: none; what comes meanwhile fills the buffer of
// the connection, and then the server's. Infinity ends that. It returns false if no stream is open, or it is being cut,
// and an error if the stream cannot be read slowly. From any goroutine.
func (s *source) slow(rate float64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.moment(); now.stopped != "" || s.raw == nil || now.cancel != nil || now.cutting != nil && now.cutting.how != cutSlow {
		return false, nil
	}
	if st, ok := s.raw.(*h2Stream); ok && !st.conn.alone {
		return false, errSharedWire
	}
	if polledBy(s.raw) == nil {
		return false, errNotSlow
	}
	s.wants(&cutting{how: cutSlow, rate: int(min(rate, math.MaxInt32)), over: make(chan struct{})})
	_ = s.raw.Close() // gives it a turn
	return true, nil
}

// slow is that of the source, while the script knows of an open stream. On the event loop.
func (s *eventSource) slow(rate float64) bool {
	if s.ready != stateOpen {
		return false
	}
	slow, err := s.source.slow(rate)
	if err != nil {
		common.Throw(s.hub.vu.Runtime(), err)
	}
	return slow
}

// endSlow ends a slowness, unless another has followed it.
func (s *source) endSlow(c *cutting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moment().cutting == c {
		s.dropCut()
	}
}
