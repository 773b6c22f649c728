package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// followUp is the second request of one stream, from the stream's headers to the answer.
// The reader starts it and a goroutine sends it. Where the stream ends meanwhile that
// goroutine takes the source over from the reader, so that one of them tells the end.
type followUp struct {
	stream *url.URL // before redirects
	base   *url.URL // of the stream, after redirects

	// Guarded by the source's mu.
	timer   *time.Timer // until the event that it waits for
	cancel  context.CancelFunc
	running bool     // its goroutine will look at ended
	done    bool     // the answer was right
	failed  *failure // it failed: the reader is to end the stream
	ended   *failure // how the stream ended while it was running
}

var (
	errNoFirstEvent = errors.New("the event that it waits for did not come in time")
	errSecond       = errors.New("the second request (then)")
)

// awaitFirst begins to wait for the event that the second request is made from.
func (s *source) awaitFirst(a *answer) {
	f := &followUp{stream: a.asked, base: a.url}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.momentToSet().follow, s.awaits = f, true
	if within := s.opts.rare.then.timeout; within > 0 {
		f.timer = time.AfterFunc(within, func() {
			s.failFollow(f, thenFailure(fmt.Errorf("%w: %v", errNoFirstEvent, within), 0))
		})
	}
}

func thenFailure(err error, status int) *failure {
	return &failure{reason: ReasonThen, err: fmt.Errorf("%w: %w", errSecond, err), status: status}
}

// failFollow ends the stream for a failure of its second request. It does not wait.
func (s *source) failFollow(f *followUp, why *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moment().follow != f || f.failed != nil || f.done {
		return // that stream has ended, or is not waiting any more
	}
	f.failed = why
	s.attention.Store(true)
	if s.raw != nil {
		_ = s.raw.Close()
	}
}

// followFirst sends the second request if this is the event it waits for. In the reader.
//
//go:noinline // most streams have no second request, and their stacks no room for its frame
func (s *source) followFirst(e *eventstream.Event) {
	then := s.opts.rare.then
	var made *secondRequest
	var err error
	if then.inGo != nil {
		made, err = then.ask(e)
	}
	if then.inGo != nil && made == nil && err == nil || !then.awaits(e.Name) {
		return
	}
	s.awaits = false
	s.mu.Lock()
	f := s.moment().follow
	if f.timer != nil {
		f.timer.Stop()
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.failFollow(f, thenFailure(err, 0))
		return
	case made != nil:
		s.startFollow(f, made, nil)
		return
	}
	first := &firstEvent{ID: eventstream.Text(e.ID), Name: eventstream.Text(e.Name), Data: eventstream.Text(e.Data)}
	if !then.needsJS() {
		s.startFollow(f, then, first)
		return
	}
	s.client.makeSecond(f, first)
}

// waitsFor says that the stream of a second request is open, and that it has not failed.
func (s *source) waitsFor(f *followUp) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moment().follow == f && f.failed == nil
}

// startFollow has a goroutine send the request, unless the stream has ended. From the
// reader or the event loop.
func (s *source) startFollow(f *followUp, then *secondRequest, first *firstEvent) {
	r, err := then.request(s.hub.state, f.stream, f.base, first, s.opts.followRedirects)
	if err != nil {
		s.failFollow(f, thenFailure(err, 0))
		return
	}
	r.followRedirects = s.opts.followRedirects
	r.share(s.opts.sharing, s.hub.state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moment().follow != f || f.failed != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.hub.ctx)
	f.cancel, f.running = cancel, true
	go s.runFollow(ctx, f, then, r)
}

// runFollow sends the request and tells what came of it.
func (s *source) runFollow(ctx context.Context, f *followUp, then *secondRequest, r *request) {
	defer f.cancel()
	begun, a, why := s.sendFollow(ctx, then, r)
	if why == nil && ctx.Err() == nil {
		s.tellAnswered(begun, a)
	}
	s.mu.Lock()
	f.running = false
	ended := f.ended
	if why == nil {
		f.done, s.failures = true, 0
	}
	s.mu.Unlock()
	switch {
	case ended != nil:
		s.closed(nil, ended) // from here on the source is another's
	case why != nil && ctx.Err() == nil: // or the VU ends, and all streams with it
		s.failFollow(f, why)
	}
	if a != nil {
		a.drain()
	}
}

// sendFollow returns an answer with a right status, and otherwise the failure.
func (s *source) sendFollow(ctx context.Context, then *secondRequest, r *request) (begun time.Time, a *answer, why *failure) {
	if !awaitRate(ctx, s.hub.state) || !processDials.enter(ctx) {
		return begun, nil, thenFailure(ctx.Err(), 0)
	}
	defer processDials.leave()
	begun = time.Now()
	dialCtx, cancel := contextWithin(ctx, then.timeout)
	defer cancel()
	d := dialer{m: s.hub.m, state: s.hub.state, tags: &s.opts.tags, attach: func(conn net.Conn) bool {
		context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}}
	a, fail := d.exchange(dialCtx, r)
	switch {
	case fail != nil && a == nil:
		return begun, nil, thenFailure(fail.err, 0)
	case fail != nil:
		return begun, nil, thenFailure(fail.err, a.status)
	case !then.right(a.status):
		why = thenFailure(fmt.Errorf("unexpected status %d %s%s", a.status, http.StatusText(a.status), a.explain()), a.status)
		why.retryAfter = retryAfter(a.header.Get("Retry-After"), time.Now())
		hangUp(a.conn)
		return begun, nil, why
	}
	return begun, a, nil
}

// tellAnswered tells of an answer with a right status. The source has not ended.
func (s *source) tellAnswered(begun time.Time, a *answer) {
	if o := s.facets().answered; o != nil {
		o.Answered(a.at, a.status)
	}
	s.hub.push(sample(s.hub.m.metrics.then, &s.counter.tags, a.at, metrics.D(a.at.Sub(begun))))
	s.client.answered(a.at, a.status)
}

const (
	drainBytes = 64 << 10
	drainFor   = 250 * time.Millisecond
)

// drain reads the rest of an answer, so that it is the server that closes the connection and keeps its
// address in TIME_WAIT: a ramp of thousands has no addresses to spare here. Whoever waits is not held up.
func (a *answer) drain() {
	_ = a.conn.SetReadDeadline(time.Now().Add(drainFor))
	_, _ = io.Copy(io.Discard, io.LimitReader(a.conn, drainBytes))
	hangUp(a.conn)
}

// endFollow is called by the reader when its stream has ended, as end says. It returns how to tell the
// end, which may be the second request's failure; nil where the goroutine of that is to tell it.
func (s *source) endFollow(end *failure) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment()
	f := now.follow
	now.follow, s.awaits = nil, false
	if f.timer != nil {
		f.timer.Stop()
	}
	if !f.done {
		s.failures++
	}
	if f.failed != nil && now.stopped == "" && errors.Is(end.err, net.ErrClosed) {
		end = f.failed
	}
	if f.running {
		f.ended = end
		f.cancel()
		return nil
	}
	return end
}

// lock has the observers of a source with a second request told by one goroutine at a time: the
// reader, and the one that sends the request.
func (f *facets) lock(o Observer) Observer {
	mu := new(sync.Mutex)
	if inner, ok := o.(AnswerObserver); ok {
		f.answered = lockedAnswers{inner, mu}
	}
	if f.blocks != nil {
		f.blocks = lockedBlocks{f.blocks, mu}
	}
	if f.cuts != nil {
		f.cuts = lockedCuts{f.cuts, mu}
	}
	return lockedObserver{o, mu}
}

type (
	lockedObserver struct {
		Observer
		mu *sync.Mutex
	}
	lockedBlocks struct {
		BlockObserver
		mu *sync.Mutex
	}
	lockedAnswers struct {
		AnswerObserver
		mu *sync.Mutex
	}
	lockedCuts struct {
		CutObserver
		mu *sync.Mutex
	}
)

// Coded is one with that of the observer, if it is a CodingObserver.
func (o lockedObserver) Coded(coding string) { tellCoded(o.Observer, coding) }

// Redirected is the same for a RedirectObserver.
func (o lockedObserver) Redirected(origin string) { tellRedirected(o.Observer, origin) }

// Shared is the same for a SharedObserver.
func (o lockedObserver) Shared(first bool) { tellShared(o.Observer, first) }

func (o lockedObserver) Event(at time.Time, e *eventstream.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Observer.Event(at, e)
}

func (o lockedBlocks) Comment(at time.Time, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.BlockObserver.Comment(at, text)
}

func (o lockedBlocks) Block(at time.Time, b *eventstream.Block) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.BlockObserver.Block(at, b)
}

func (o lockedAnswers) Answered(at time.Time, status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.AnswerObserver.Answered(at, status)
}

func (o lockedCuts) Cut(at time.Time, how Cut) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.CutObserver.Cut(at, how)
}

func (o lockedCuts) PauseOver(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.CutObserver.PauseOver(at)
}
