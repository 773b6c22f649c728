package sse

import (
	"context"
	"net/http"
	"time"

	"go.k6.io/k6/v2/metrics"
)

// connect makes one attempt: dial, handshake, request, response head. It runs in a
// goroutine of its own, whose stack grows with TLS and the parsing of headers, and
// hands a stream over: to the poller, or to a fresh one.
func (s *source) connect() {
	if !s.enterGate() {
		s.end()
		return
	}
	ctx, cancel := s.dialContext(s.opts.connectTimeout)
	if ctx == nil {
		processDials.leave()
		s.end()
		return
	}
	begun := time.Now()
	s.opened = false
	s.opts.ledger.Connecting(begun)
	a, fail := s.dial(ctx)
	cancel() // before anybody else may dial
	processDials.leave()
	if fail != nil {
		s.closed(a, fail)
		return
	}
	_ = a.conn.SetDeadline(time.Time{}) // an error comes again at the first read
	p := poll(a.conn, s)
	var w wire = parked{a.conn}
	if p != nil {
		w = p
		s.mu.Lock()
		s.raw = p
		s.mu.Unlock()
	}
	s.accept(begun, a, w)
	if p == nil {
		go s.read()
	} else if err := p.start(); err != nil {
		s.finishStream(err)
	}
}

func (s *source) dial(ctx context.Context) (*answer, *failure) {
	u, err := parseURL(s.url)
	if err != nil { // it was parsed before
		return nil, &failure{reason: ReasonError, err: err}
	}
	d := dialer{m: s.hub.m, state: s.state, link: s}
	return d.open(ctx, &request{
		url: u, method: http.MethodGet, header: s.opts.header, jar: s.state.CookieJar,
		userAgent: s.state.Options.UserAgent.String, maxRedirects: s.opts.maxRedirects,
		lastEventID: string(s.parser.LastEventID()),
	})
}

// enterGate waits for its turn to dial, which is no part of the time to connect. It returns
// false where the source is stopped first.
func (s *source) enterGate() bool {
	ctx, cancel := s.dialContext(0)
	if ctx == nil {
		return false
	}
	defer cancel()
	return processDials.enter(ctx)
}

// dialContext limits an attempt by timeout (0: not) and makes it reachable for stop.
// Both are nil where the source has been stopped already.
func (s *source) dialContext(timeout time.Duration) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer, s.raw = nil, nil
	if s.stopped != "" {
		return nil, nil
	}
	ctx, cancel := contextWithin(s.hub.ctx, timeout)
	s.cancel = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
	}
}

// contextWithin is a context that ends after d, for 0 only with its parent.
func contextWithin(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(parent, d)
	}
	return context.WithCancel(parent)
}

// accept tells that an event stream has opened and prepares its reading.
func (s *source) accept(begun time.Time, a *answer, w wire) {
	s.opened, s.first, s.failures, s.openedAt = true, true, 0, a.at
	s.opts.ledger.Opened(a.at)
	processRamp.opened()

	s.openTags = describeResponse(s.tags, s.state, a)
	s.counter = s.hub.counter(s.openTags)
	took := a.at.Sub(begun)
	m := s.hub.m.metrics
	s.hub.push(
		sample(m.connecting, &s.openTags, a.at, metrics.D(took)),
		sample(m.opened, &s.openTags, a.at, 1),
	)
	s.body = body{wire: w, left: a.left, at: a.at, framing: a.frame}
	s.body.watch(&s.idleTimeout)
	s.parser.Reset(&s.body, s.opts.maxEventSize)

	status, from := a.status, origin(a.url)
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		s.ready, s.status, s.origin, s.connectMs = stateOpen, status, from, metrics.D(took)
		return s.fire("open", a.at, nil)
	})
}
