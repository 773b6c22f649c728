package sseclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// longestBackoff bounds the delay after repeated failures.
const longestBackoff = 30 * time.Second

// closed reports the end of an attempt or a stream, and arranges the next attempt. r is a response that was not accepted.
func (s *Stream) closed(r *Response, f *failure) {
	now := time.Now()
	if !s.opened {
		s.failures++
	}
	c := Close{Reason: f.reason, Err: f.err, Status: f.status, Retry: s.retryIn(f), Opened: s.opened, Response: r}
	if why := s.stopReason(); why != "" {
		c.Retry = -1
		if errors.Is(f.err, net.ErrClosed) || errors.Is(f.err, context.Canceled) {
			c.Reason, c.Err = why, nil
		}
	}
	if c.Reason == ReasonNoContent {
		c.Err = nil
	}
	s.on.Closed(now, c)
	if c.Retry < 0 || !s.wait(c.Retry) {
		s.end()
	}
}

func (s *Stream) stopReason() Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == "" && s.group.ctx.Err() != nil {
		s.stopped = ReasonInterrupted // before the group has
		s.group.interrupted.Store(true)
	}
	return s.stopped
}

// retryIn returns the time until the next attempt, negative if there is none.
func (s *Stream) retryIn(f *failure) time.Duration {
	mode := Reconnect(s.reconnect.Load())
	if mode == ReconnectOff || errors.Is(f.err, ErrScheme) {
		return -1
	}
	switch f.reason {
	case ReasonNoContent, ReasonContentType, ReasonTooLong, ReasonRenew:
		return -1 // HTML standard, section 9.2.3: fail the connection
	case ReasonStatus, ReasonThen:
		if f.reason == ReasonThen && f.status == 0 {
			break // a network error, or a timeout
		}
		passing := f.status >= 500 || f.status == http.StatusConflict || f.status == http.StatusTooManyRequests ||
			f.reason == ReasonThen && (f.status == http.StatusNotFound || f.status == http.StatusGone) // of this stream, not of the next one
		if mode != ReconnectAlways || !passing {
			return -1
		}
	}
	if f.reason == ReasonCut && s.dropped.Load() == returnAtOnce {
		return 0
	}
	base, hasRetry := s.parser.ReconnectionTime()
	if !hasRetry {
		base = s.opts.ReconnectDelay
	}
	if s.opts.ExactDelay {
		return base
	}
	return delay(base, int(s.failures), f.retryAfter)
}

// delay returns the time until the next attempt: at least the reconnection time, to which section 9.2.3 of the HTML standard lets a
// client add. Each failed attempt in a row after the first doubles it, up to 30 s; a random factor in [1, 2) spreads the reconnects
// of many clients. It is not shorter than Retry-After times a factor in [1, 1.5).
func delay(base time.Duration, failures int, retryAfter time.Duration) time.Duration {
	const minBackoff = 50 * time.Millisecond // also for retry: 0
	if failures > 0 {
		base = max(base, minBackoff)
	}
	for range failures - 1 {
		if base >= longestBackoff {
			break
		}
		base = min(2*base, longestBackoff)
	}
	d := time.Duration(float64(base) * (1 + rand.Float64())) // #nosec G404 -- jitter
	if retryAfter > 0 {
		d = max(d, time.Duration(float64(retryAfter)*(1+rand.Float64()/2))) // #nosec G404 -- jitter
	}
	return d
}

// wait makes a timer start the next attempt; no goroutine waits. It returns false if the stream must not reconnect.
func (s *Stream) wait(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != "" || !s.Reconnects() {
		return false
	}
	s.raw = nil
	s.timer = time.AfterFunc(d, s.retry)
	return true
}

// retry starts the next attempt, whose time has come.
func (s *Stream) retry() {
	if s.on.Renew == nil {
		s.connect()
		return
	}
	s.on.Renew(s.renewed)
}

// renewed continues the attempt that Renew prepared.
func (s *Stream) renewed(err error) {
	switch {
	case s.Stopped():
		s.end()
	case err != nil:
		go s.notRenewed(err)
	default:
		go s.connect()
	}
}

// notRenewed reports an attempt that was not made, and ends the stream: with what was refused before it would test another client.
func (s *Stream) notRenewed(err error) {
	_, end := s.begin()
	end()
	s.opened = false
	s.on.Connecting(time.Now())
	s.closed(nil, &failure{reason: ReasonRenew, err: err})
}
