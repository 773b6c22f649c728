package sse

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"go.k6.io/k6/v2/metrics"
)

// longestBackoff bounds the delay that repeated failures lead to.
const longestBackoff = 30 * time.Second

// closed tells that an attempt or a stream has ended and arranges the next one, if
// any. a is the answer of an attempt that was refused by its status or type.
func (s *source) closed(a *answer, f *failure) {
	now := time.Now()
	if !s.opened {
		s.failures++
	}
	c := Close{Reason: f.reason, Err: f.err, Status: f.status, Retry: s.retryIn(f)}
	if why := s.stopReason(); why != "" {
		c.Retry = -1
		if errors.Is(f.err, net.ErrClosed) || errors.Is(f.err, context.Canceled) {
			c.Reason, c.Err = why, nil
		}
	}
	if c.Reason == ReasonNoContent {
		c.Err = nil
	}
	s.observer.Closed(now, c)
	s.countClosed(now, a, c.Reason)
	s.client.hasClosed(now, c, f)
	if c.Retry < 0 || !s.wait(c.Retry) {
		s.end()
	}
}

func (s *source) stopReason() Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moment().stopped == "" && s.hub.ctx.Err() != nil {
		s.momentToSet().stopped = ReasonInterrupted // seen here before the hub's watch came round
		s.hub.interrupted.Store(true)
	}
	return s.moment().stopped
}

func (s *source) countClosed(now time.Time, a *answer, why Reason) {
	var tm metrics.TagsAndMeta
	if s.opened {
		tm = s.counter.tags
	} else {
		tm = describeResponse(s.opts.tags, s.hub.state, a)
	}
	s.hub.push(s.hub.m.metrics.streamClosed(tm, now, why, s.opened))
}

// retryIn decides whether another attempt follows and when; below 0 means no.
func (s *source) retryIn(f *failure) time.Duration {
	mode := reconnectMode(s.reconnect.Load())
	if mode == reconnectOff {
		return -1
	}
	switch f.reason {
	case ReasonNoContent, ReasonContentType, ReasonTooLong, ReasonRenew:
		return -1 // section 9.2.3: fail the connection; renew is no part of it
	case ReasonStatus, ReasonThen:
		if f.reason == ReasonThen && f.status == 0 {
			break // a network error, or a time that was up
		}
		passing := f.status >= 500 || f.status == http.StatusConflict || f.status == http.StatusTooManyRequests ||
			f.reason == ReasonThen && (f.status == http.StatusNotFound || f.status == http.StatusGone) // it named a stream, the next one is another
		if mode != reconnectStubborn || !passing {
			return -1
		}
	}
	if f.reason == ReasonCut && s.dropped.Load() == returnAtOnce {
		return 0
	}
	base, asked := s.parser.ReconnectionTime()
	if !asked {
		base = s.opts.reconnectDelay
	}
	return delay(base, int(s.failures), f.retryAfter)
}

// delay is the wait before the next attempt: never shorter than the reconnection time,
// which section 9.2.3 of the HTML standard lets a client add to. Here that is doubled for
// each failed attempt in a row after the first up to 30 s, and multiplied by a random
// factor in [1, 2), which spreads the reconnects of many clients. Nor is a Retry-After
// undercut: times a factor in [1, 1.5).
func delay(base time.Duration, failures int, retryAfter time.Duration) time.Duration {
	const leastBackoff = 50 * time.Millisecond // retry: 0 is no leave to spin
	if failures > 0 {
		base = max(base, leastBackoff)
	}
	for range failures - 1 {
		if base >= longestBackoff {
			break
		}
		base = min(2*base, longestBackoff)
	}
	d := time.Duration(float64(base) * (1 + rand.Float64())) //nolint:gosec // G404: jitter
	if retryAfter > 0 {
		d = max(d, time.Duration(float64(retryAfter)*(1+rand.Float64()/2))) //nolint:gosec // G404: jitter
	}
	return d
}

// wait lets a timer make the next attempt; there is no goroutine meanwhile. It
// reports false where the source has been stopped or told not to reconnect.
func (s *source) wait(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moment().stopped != "" || reconnectMode(s.reconnect.Load()) == reconnectOff {
		return false
	}
	s.raw = nil
	s.momentToSet().timer = time.AfterFunc(d, s.client.again)
	return true
}

// setReconnect says whether it reconnects. It reports true where it waits for another attempt, and is not to make it: it
// is to be stopped then.
func (s *source) setReconnect(on bool) (over bool) {
	mode := reconnectOff
	if on {
		mode = max(s.opts.reconnect, reconnectStandard)
	}
	s.reconnect.Store(int32(mode))
	if on {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moment().timer != nil
}

// setIdle changes the idleTimeout.
func (s *source) setIdle(within time.Duration) {
	was := time.Duration(s.body.timeout.Swap(int64(within)))
	if within > 0 && (was == 0 || within < was) {
		processSweep.sooner(within)
	}
}
