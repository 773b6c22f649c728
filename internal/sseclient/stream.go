package sseclient

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A Stream manages one client's SSE connection across reconnects. At any time one goroutine (dialing or reading), the poller
// (reading) or a timer (waiting for the next attempt) owns it, until its callback Ended is called.
type Stream struct {
	group  *Group
	opts   *Options
	on     Callbacks
	canCut bool // a caller may cut it: it shares no connection

	reconnect atomic.Int32 // a Reconnect
	dropped   atomic.Int32 // how it reconnects after Drop

	mu      sync.Mutex // guards the fields up to stopped
	raw     io.Closer  // by which Stop reaches the owner
	cancel  context.CancelFunc
	timer   *time.Timer // until the next attempt
	follow  *FollowUp   // the second request of the open stream; nil: none
	cutting *cutting    // of the open stream; nil: none
	stopped Reason      // why it ends; "": it does not

	// Of the owner.
	parser   eventstream.Parser
	body     body  // any goroutine may change its timeout
	failures int32 // attempts since the last stream opened
	opened   bool
	awaits   bool // the second request waits for its event
	keeps    bool // see KeepConnection

	attention atomic.Bool // isStopped may report something: most turns need not call it
}

// Start starts the first attempt in a goroutine.
func (s *Stream) Start() { go s.connect() }

// Open starts the first attempt. It returns when that may dial, so that a caller that opens thousands needs no goroutine for each
// stream that waits.
func (s *Stream) Open() {
	if at, ok := s.await(); ok {
		go s.attempt(at)
	}
}

// attach makes the connection reachable for Stop. It returns false if the stream was stopped before.
func (s *Stream) attach(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = conn
	return s.stopped == ""
}

// Stop ends the stream for good, once: only the first reason counts. It does not wait, and closes the connection without TLS's
// close_notify, which could block. Any goroutine may call it.
func (s *Stream) Stop(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != "" {
		return
	}
	s.stopped = why
	s.attention.Store(true)
	if s.cutting != nil {
		close(s.cutting.stopped)
	}
	if s.cancel != nil {
		s.cancel()
	}
	if s.raw != nil {
		_ = s.raw.Close()
	}
	if s.timer != nil && s.timer.Stop() {
		s.end() // the timer was its owner
	}
}

// Stopped reports whether the stream was stopped.
func (s *Stream) Stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped != ""
}

// isStopped reports whether the stream is to end: it was stopped, or its second request failed. c is a cut that was requested, nil
// for none.
func (s *Stream) isStopped() (stopped bool, c *cutting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped = s.stopped != "" || s.follow != nil && s.follow.failed != nil
	if !stopped && s.cutting == nil {
		s.attention.Store(false)
	}
	return stopped, s.cutting
}

// end ends the ownership of the stream. Ended may be called with mu held.
func (s *Stream) end() {
	s.group.forget(s)
	s.on.Ended()
}

// SetReconnect sets whether the stream reconnects. It reports whether it stopped the stream, which waited for an attempt.
func (s *Stream) SetReconnect(on bool) (stopped bool) {
	mode := ReconnectOff
	if on {
		mode = max(s.opts.Reconnect, ReconnectStandard)
	}
	s.reconnect.Store(int32(mode))
	s.mu.Lock()
	waits := s.timer != nil
	s.mu.Unlock()
	if on || !waits {
		return false
	}
	s.Stop(ReasonClient)
	return true
}

// Reconnects reports whether the stream reconnects.
func (s *Stream) Reconnects() bool { return Reconnect(s.reconnect.Load()) != ReconnectOff }

// SetIdleTimeout changes the IdleTimeout of the stream.
func (s *Stream) SetIdleTimeout(timeout time.Duration) {
	previous := time.Duration(s.body.timeout.Swap(int64(timeout)))
	if timeout > 0 && (previous == 0 || timeout < previous) {
		processSweep.sooner(timeout)
	}
}

// IdleTimeout returns the present IdleTimeout of the stream.
func (s *Stream) IdleTimeout() time.Duration { return s.body.limit() }

// EndByServer makes the stream wait for the server to end it, however long it is silent, and not reconnect.
func (s *Stream) EndByServer() {
	s.SetIdleTimeout(0)
	s.SetReconnect(false)
}
