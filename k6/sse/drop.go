package sse

// How a source connects again after drop, until it is dropped again.
const (
	usualReturn  int32 = iota // it was not dropped
	spreadReturn              // after the reconnection time, spread, but without waiting for a turn to dial
	returnAtOnce              // at once
)

// drop closes the open stream as a client does that lost its network for a moment, and connects again with the last event
// ID. A dropped source dials without a turn, so that a storm of reconnects is not throttled. It returns false if no
// stream is open. From any goroutine.
func (s *source) drop(atOnce bool) bool {
	was := s.dropped.Load()
	how := spreadReturn
	if atOnce {
		how = returnAtOnce
	}
	s.dropped.Store(how) // before the cut, which another goroutine makes
	if !s.Cut(CutFIN, 0) {
		s.dropped.Store(was)
		return false
	}
	return true
}

// drop is that of the source, while the script knows of an open stream. On the event loop.
func (s *eventSource) drop(atOnce bool) bool {
	if s.ready != stateOpen || !s.source.drop(atOnce) {
		return false
	}
	s.ready = stateConnecting // it may be back before the event loop hears of its end: the next one is not the one that was open
	return true
}

// takesTurn says that the source waits for a turn to dial.
func (s *source) takesTurn() bool { return s.dropped.Load() == usualReturn }
