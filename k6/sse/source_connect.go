package sse

import (
	"cmp"
	"context"
	"time"

	"github.com/sse-soak/sse-soak/internal/redirect"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// connect makes one attempt: dial, handshake, request, response head. It runs in a
// goroutine of its own, whose stack grows with TLS and the parsing of headers, and
// hands a stream over: to the poller, or to a fresh one.
func (s *source) connect() {
	if at, ok := s.await(); ok {
		s.attempt(at)
	}
}

// An attempt is one to open a stream, whose turn has come.
type attempt struct {
	ctx     context.Context
	end     func() // forgets ctx
	turn    *turn  // nil: none was waited for
	request Request
}

// await begins an attempt, and waits until it may dial; it ends the source where that is stopped meanwhile.
func (s *source) await() (at attempt, ok bool) {
	at.ctx, at.end = s.begin()
	at.request = s.client.request()
	ok = awaitRate(at.ctx, s.hub.state) // to wait is no part of the time to connect
	if ok && s.takesTurn() {
		at.turn, ok = takeTurn(at.ctx, handshakes(at.request.URL, s.hub.m.proxies))
	}
	if !ok {
		at.end()
		s.end()
	}
	return at, ok
}

// attempt dials.
func (s *source) attempt(at attempt) {
	t := at.turn
	begun := time.Now()
	s.opened = false
	s.observer.Connecting(begun)
	a, fail := s.dial(at.ctx, t, &at.request)
	at.end() // before anybody else may dial
	t.leave()
	if fail != nil {
		s.closed(a, fail)
		return
	}
	if shared, ok := a.conn.(*h2Pipe); ok {
		st := shared.st
		s.mu.Lock()
		s.raw = st
		s.mu.Unlock()
		s.accept(begun, a, st)
		st.start(s)
		return
	}
	a.hold()
	p := poll(a.conn, s)
	var w wire = parked{a.conn}
	if s.facets().cuts != nil {
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

func (s *source) dial(ctx context.Context, t *turn, what *Request) (*answer, *failure) {
	ctx, cancel := contextWithin(ctx, s.opts.connectTimeout)
	defer cancel()
	u, err := parseURL(what.URL) // again: kept, it would cost each stream 200 bytes
	if err != nil {
		return nil, &failure{reason: ReasonError, err: err}
	}
	d := dialer{m: s.hub.m, state: s.hub.state, attach: s.attach, turn: t, tags: &s.opts.tags}
	r := s.opts.request(s.hub.state, u)
	r.header = what.Header
	r.maxRedirects = int(s.opts.maxRedirects)
	r.method, r.body, r.accept = cmp.Or(what.Method, r.method), what.Body, s.opts.rarely().accept
	if r.share(s.opts.sharing, s.hub.state); s.facets().cuts != nil {
		r.perConnection = 1 // what is done to its connection is done to no other stream
	}
	id := eventstream.Text(s.parser.LastEventID())
	if last := s.facets().last; last != nil {
		id = last.LastEventID()
	}
	s.opts.rarely().resume.tell(r, id)
	return d.open(ctx, r)
}

// tellRedirected tells an observer that wants to know.
func tellRedirected(o Observer, origin string) {
	if o, ok := o.(RedirectObserver); ok {
		o.Redirected(origin)
	}
}

// begin takes the source over from its timer. ctx ends with the attempt, and when the source is
// stopped, even before; end forgets it.
func (s *source) begin() (ctx context.Context, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.hub.ctx)
	now := s.momentToSet()
	s.raw, now.timer, now.cancel, now.cutting = nil, nil, cancel, nil
	if now.stopped != "" {
		cancel()
	}
	return ctx, func() {
		cancel()
		s.mu.Lock()
		now.cancel = nil
		s.passed()
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
	s.opened, s.first, s.openedAt = true, true, a.at.Sub(processStart)
	if head := s.facets().head; head != nil {
		head.Head(a.header)
	}
	tellCoded(s.observer, a.coding())
	if a.otherOrigin {
		tellRedirected(s.observer, redirect.Origin(a.url))
	}
	if st, ok := w.(*h2Stream); ok {
		tellShared(s.observer, st.conn.firstOpened())
	}
	s.observer.Opened(a.at)
	if s.opts.rarely().then == nil {
		s.failures = 0
	} else {
		s.awaitFirst(a)
	}
	processRamp.opened()

	s.counter = s.hub.counter(describeResponse(s.opts.tags, s.hub.state, a))
	s.hub.push(s.hub.m.metrics.streamOpened(&s.counter.tags, begun, a.at)...)
	s.body.begin(a, w)
	s.body.watch(a.at)
	s.parser.Reset(s.body.unpacked(a), int(s.opts.maxEventSize))

	s.client.hasOpened(begun, a)
}
