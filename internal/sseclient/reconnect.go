package sseclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// maxBackoff limits the growth of the delay after repeated failures, before the random factor is applied.
const maxBackoff = 30 * time.Second

// endAttempt reports the end of an attempt or a stream, and schedules the next attempt, if any. r is a rejected
// response or nil.
func (s *Stream) endAttempt(r *Response, f *failure) {
	now := time.Now()
	if !s.hasOpened {
		s.failures++
	}
	c := Close{Reason: f.reason, Err: f.err, Status: f.status, Retry: s.retryDelay(f), Opened: s.hasOpened, Response: r}
	if requested, ok := s.parser.ReconnectionTime(); ok {
		c.ReconnectionTime = requested
	}
	if reason := s.stopReason(); reason != "" {
		c.Retry = -1
		if errors.Is(f.err, net.ErrClosed) || errors.Is(f.err, context.Canceled) {
			c.Reason, c.Err = reason, nil
		}
	}
	if c.Reason == ReasonNoContent {
		c.Err = nil
	}
	if s.callbacks.Closed != nil {
		s.callbacks.Closed(s, now, c)
	}
	if c.Retry < 0 || !s.wait(c.Retry) {
		s.end()
	}
}

func (s *Stream) stopReason() Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == "" && s.group.ctx.Err() != nil {
		s.stopped = ReasonInterrupted // Group.Interrupt has not yet stopped this stream
		s.group.isInterrupted.Store(true)
	}
	return s.stopped
}

// retryDelay returns the time until the next attempt, or a negative value if no attempt follows.
func (s *Stream) retryDelay(f *failure) time.Duration {
	mode := Reconnect(s.reconnect.Load())
	if mode == ReconnectOff || errors.Is(f.err, ErrScheme) {
		return -1
	}
	switch f.reason {
	case ReasonNoContent, ReasonContentType, ReasonTooLong, ReasonRenew:
		return -1 // by the HTML standard (section 9.2.3, "fail the connection"), or because the stream cannot continue
	case ReasonStatus, ReasonThen:
		if f.reason == ReasonThen && f.status == 0 {
			break // a network error, or a timeout
		}
		// The URL of a second request may be valid only for its stream, which the server may have forgotten.
		isUnknown := f.reason == ReasonThen && (f.status == http.StatusNotFound || f.status == http.StatusGone)
		isTemporary := f.status >= 500 || f.status == http.StatusConflict || f.status == http.StatusTooManyRequests || isUnknown
		if mode != ReconnectAlways || !isTemporary {
			return -1
		}
	}
	if f.reason == ReasonCut && s.drop.Load() == dropImmediate {
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

// delay returns the time until the next attempt. It is at least the reconnection time; section 9.2.3 of the HTML
// standard allows a longer delay. Each successive failure after the first doubles the delay, up to maxBackoff. The
// result is multiplied by a random factor in [1, 2), which spreads the reconnects of many clients. The delay is also at
// least Retry-After multiplied by a random factor in [1, 1.5).
func delay(base time.Duration, failures int, retryAfter time.Duration) time.Duration {
	const minBackoff = 50 * time.Millisecond // also for retry: 0
	if failures > 0 {
		base = max(base, minBackoff)
	}
	for range failures - 1 {
		if base >= maxBackoff {
			break
		}
		base = min(2*base, maxBackoff)
	}
	d := time.Duration(float64(base) * (1 + rand.Float64())) // #nosec G404 -- jitter
	if retryAfter > 0 {
		d = max(d, time.Duration(float64(retryAfter)*(1+rand.Float64()/2))) // #nosec G404 -- jitter
	}
	return d
}

// wait starts a timer for the next attempt. It returns false if the stream must not reconnect.
func (s *Stream) wait(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != "" || !s.Reconnects() {
		return false
	}
	s.raw, s.cancel = nil, nil
	s.timer = time.AfterFunc(d, s.retry)
	return true
}

func (s *Stream) retry() {
	if s.callbacks.Renew == nil {
		s.connect()
		return
	}
	s.callbacks.Renew(s, s.continueAttempt)
}

func (s *Stream) continueAttempt(err error) {
	switch {
	case s.Stopped():
		s.end()
	case err != nil:
		go s.failRenewal(err)
	default:
		go s.connect()
	}
}

// failRenewal ends the stream. It does not repeat the previous request, which may have an expired token.
func (s *Stream) failRenewal(err error) {
	_, end := s.begin()
	end()
	s.reportAttempt(time.Now())
	s.endAttempt(nil, &failure{reason: ReasonRenew, err: err})
}
