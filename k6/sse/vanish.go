package sse

import "go.k6.io/k6/v2/js/common"

// vanish leaves the open stream half-open, as a machine does that is gone. It returns false where no stream is open, and
// throws where this system cannot do that. On the event loop.
func (s *eventSource) vanish() bool {
	if err := canVanish(); err != nil {
		common.Throw(s.hub.vu.Runtime(), err)
	}
	s.mu.Lock()
	st, ok := s.raw.(*h2Stream)
	s.mu.Unlock()
	if ok && !st.conn.alone {
		common.Throw(s.hub.vu.Runtime(), errSharedWire)
	}
	return s.ready == stateOpen && s.Cut(CutGone, 0)
}
