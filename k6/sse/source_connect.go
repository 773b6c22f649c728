package sse

import (
	"cmp"
	"context"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// connect makes one attempt: dial, handshake, request, response head. It runs in a
// goroutine of its own, whose stack grows with TLS and the parsing of headers, and
// hands a stream over: to the poller, or to a fresh one.
func (s *source) connect() {
	ctx, end := s.begin()
	var t *turn
	ok := awaitRate(ctx, s.state) // to wait is no part of the time to connect
	if ok && s.takesTurn() {
		t, ok = takeTurn(ctx, s.url)
	}
	if !ok {
		end()
		s.end()
		return
	}
	begun := time.Now()
	s.opened = false
	s.opts.ledger.Connecting(begun)
	a, fail := s.dial(ctx, t)
	end() // before anybody else may dial
	t.leave()
	if fail != nil {
		s.closed(a, fail)
		return
	}
	a.hold()
	p := poll(a.conn, s)
	var w wire = parked{a.conn}
	if s.opts.rarely().cuts != nil {
		w = resting{parked{a.conn}, s}
	}
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

func (s *source) dial(ctx context.Context, t *turn) (*answer, *failure) {
	ctx, cancel := contextWithin(ctx, s.opts.connectTimeout)
	defer cancel()
	u, err := parseURL(s.url) // again: kept, it would cost each stream 200 bytes
	if err != nil {
		return nil, &failure{reason: ReasonError, err: err}
	}
	d := dialer{m: s.hub.m, state: s.state, attach: s.attach, turn: t, tags: &s.opts.tags}
	r := s.opts.request(s.state, u)
	r.maxRedirects = s.opts.maxRedirects
	rare := s.opts.rarely()
	r.method, r.body = cmp.Or(rare.method, r.method), rare.body
	id := eventstream.Text(s.parser.LastEventID())
	if rare.last != nil {
		id = rare.last.LastEventID()
	}
	rare.resume.tell(r, id)
	return d.open(ctx, r)
}

// begin takes the source over from its timer. ctx ends with the attempt, and when the source is
// stopped, even before; end forgets it.
func (s *source) begin() (ctx context.Context, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.hub.ctx)
	s.timer, s.raw, s.cancel, s.cutting = nil, nil, cancel, nil
	if s.stopped != "" {
		cancel()
	}
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
	s.opened, s.first, s.openedAt = true, true, a.at
	if head := s.opts.rarely().head; head != nil {
		head.Head(a.header)
	}
	s.opts.ledger.Opened(a.at)
	if s.opts.rarely().then == nil {
		s.failures = 0
	} else {
		s.awaitFirst(a)
	}
	processRamp.opened()

	s.openTags = describeResponse(s.opts.tags, s.state, a)
	s.counter = s.hub.counter(s.openTags)
	s.hub.push(s.hub.m.metrics.streamOpened(&s.openTags, begun, a.at)...)
	s.body = body{wire: w, left: a.left, at: a.at, framing: a.frame}
	s.body.watch(&s.idleTimeout)
	s.parser.Reset(&s.body, s.opts.maxEventSize)

	status, from, openedAt := a.status, origin(a.url), a.at
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		s.ready, s.status, s.origin, s.connectMs = stateOpen, status, from, metrics.D(openedAt.Sub(begun))
		return s.fire(plainEvent, "open", openedAt, nil)
	})
}
