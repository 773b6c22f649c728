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

// A Stream manages one client's SSE connection across reconnects. At any time it has one owner: a goroutine (dialing or
// reading), the poller (reading), or a timer (waiting for the next attempt). The call to Ended ends the ownership.
type Stream struct {
	group     *Group
	opts      *Options
	callbacks *Callbacks
	value     any
	calls     *sync.Mutex // serializes the callbacks of two goroutines; nil: there is no second request

	reconnect atomic.Int32 // a Reconnect
	drop      atomic.Int32 // dropNone, dropDelayed or dropImmediate

	mu       sync.Mutex         // guards the fields up to stopped
	raw      io.Closer          // Stop closes it to interrupt the owner
	cancel   context.CancelFunc // ends the attempt; nil: the stream is open or waits
	timer    *time.Timer        // until the next attempt
	followUp *FollowUp          // second request of the open stream; nil: none
	cut      *cutRequest        // requested cut of the open stream; nil: none
	stopped  Reason             // the first reason of Stop; "": not stopped

	// Only the owner uses these fields.
	parser          eventstream.Parser
	body            body  // any goroutine may change its timeout
	failures        int32 // successive failed attempts
	hasOpened       bool  // the current attempt has opened a stream
	awaitsEvent     bool  // Callbacks.FollowUp has not yet returned true
	keepsConnection bool  // see KeepConnection

	cuttable    bool         // a caller may cut the stream, so the stream shares no connection
	attention   atomic.Bool  // set if isStopped may return true or a cut; otherwise turn does not call isStopped
	finishTurns atomic.Int32 // remaining number of turns that may read before the stream ends; see Finish
}

// Value returns the value that the caller of Group.Add gave to the stream.
func (s *Stream) Value() any { return s.value }

// Start starts the first attempt in a goroutine.
func (s *Stream) Start() { go s.connect() }

// Open starts the first attempt. It returns when the attempt may dial, so that waiting streams need no goroutine.
func (s *Stream) Open() {
	if a, ok := s.await(); ok {
		go s.attempt(a)
	}
}

// attach sets the connection that Stop closes. It returns false if the stream is already stopped.
func (s *Stream) attach(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = conn
	return s.stopped == ""
}

// Stop ends the stream without a reconnect. Only the first reason counts. Stop does not wait. It closes the
// connection without a TLS close_notify alert, because sending that could block. Any goroutine may call Stop.
func (s *Stream) Stop(reason Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != "" {
		return
	}
	s.stopped = reason
	s.attention.Store(true)
	if s.cut != nil {
		close(s.cut.stop)
	}
	if s.cancel != nil {
		s.cancel()
	}
	if s.raw != nil {
		_ = s.raw.Close()
	}
	if s.timer != nil && s.timer.Stop() {
		s.end() // the timer was the owner
	}
}

// maxFinishTurns limits the reads of Finish, because a server may send faster than this client reads.
const maxFinishTurns = 1000

// Finish is Stop, but a polled stream first reports the events that have arrived. Without that, a process that stalled
// would lose the events that arrived during the stall.
func (s *Stream) Finish(reason Reason) {
	s.finishTurns.Store(maxFinishTurns)
	s.Stop(reason)
}

// Stopped reports whether the stream was stopped.
func (s *Stream) Stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped != ""
}

// isStopped reports whether the stream was stopped or its second request failed. c is the requested cut, or nil.
func (s *Stream) isStopped() (stopped bool, c *cutRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped = s.stopped != "" || s.followUp != nil && s.followUp.failure != nil
	if !stopped && s.cut == nil {
		s.attention.Store(false)
	}
	return stopped, s.cut
}

// end calls Ended. The caller owns the stream and may hold mu.
func (s *Stream) end() {
	s.group.forget(s)
	if s.callbacks.Ended != nil {
		s.callbacks.Ended(s)
	}
}

// SetReconnect sets whether the stream reconnects. If on is false and the stream waits for its next attempt,
// SetReconnect stops the stream and returns true.
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

// SetIdleTimeout changes the idle timeout of the stream; 0 removes it. If the stream was opened without a timeout, the
// new timeout applies only after the next reconnect.
func (s *Stream) SetIdleTimeout(timeout time.Duration) {
	previous := time.Duration(s.body.timeout.Swap(int64(timeout)))
	if timeout > 0 && (previous == 0 || timeout < previous) {
		processSweep.advance(timeout)
	}
}

// IdleTimeout returns the current idle timeout of the stream.
func (s *Stream) IdleTimeout() time.Duration { return s.body.limit() }

// EndByServer removes the idle timeout and turns off reconnecting, so that only the server ends the stream.
func (s *Stream) EndByServer() {
	s.SetIdleTimeout(0)
	s.SetReconnect(false)
}
