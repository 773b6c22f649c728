package sse

import "go.k6.io/k6/v2/js/common"

// vanish leaves the open stream half-open, as a machine does that is gone. It returns false if no stream is open, and an
// error if this system cannot do that. From any goroutine.
func (s *source) vanish() (bool, error) {
	if err := canVanish(); err != nil {
		return false, err
	}
	s.mu.Lock()
	st, ok := s.raw.(*h2Stream)
	s.mu.Unlock()
	if ok && !st.conn.alone {
		return false, errSharedWire
	}
	return s.Cut(CutGone, 0), nil
}

// vanish is that of the source, while the script knows of an open stream. On the event loop.
func (s *eventSource) vanish() bool {
	if s.ready != stateOpen {
		return false
	}
	vanished, err := s.source.vanish()
	if err != nil {
		common.Throw(s.hub.vu.Runtime(), err)
	}
	return vanished
}
