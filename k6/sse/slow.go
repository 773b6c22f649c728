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
// the connection, and then the server's. Infinity ends that. It returns false where no stream is open, or it is being cut,
// and throws where the stream is none that can be read slowly. On the event loop.
func (s *eventSource) slow(rate float64) bool {
	if s.ready != stateOpen {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.moment(); now.stopped != "" || s.raw == nil || now.cancel != nil || now.cutting != nil && now.cutting.how != cutSlow {
		return false
	}
	if st, ok := s.raw.(*h2Stream); ok && !st.conn.alone {
		common.Throw(s.hub.vu.Runtime(), errSharedWire)
	}
	if polledBy(s.raw) == nil {
		common.Throw(s.hub.vu.Runtime(), errNotSlow)
	}
	s.wants(&cutting{how: cutSlow, rate: int(min(rate, math.MaxInt32)), over: make(chan struct{})})
	_ = s.raw.Close() // gives it a turn
	return true
}

// endSlow ends a slowness, unless another has followed it.
func (s *source) endSlow(c *cutting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moment().cutting == c {
		s.dropCut()
	}
}
