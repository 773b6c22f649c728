package sse

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// source is one event stream of a client and all that follow it: it dials, reads, reconnects, resumes, is cut. No JS is part of
// it: an EventSource is its JS half, a Stream has none. At any time it is in the hands of one
// goroutine (dialing or reading), of the poller (reading) or of a timer (waiting to dial
// again), until its client's ended is called.
type source struct {
	hub      *hub
	client   client
	opts     *sourceOptions // shared by many, and not changed
	observer Observer
	sees     *facets // nil: the observer has no more to be told of

	reconnect atomic.Int32 // a reconnectMode
	dropped   atomic.Int32 // how it connects again after drop

	mu  sync.Mutex // guards what follows: how stop reaches the goroutine or timer
	raw io.Closer
	now *moment // nil: a stream is open, and there is nothing more to say of it

	// Of the goroutine that has the source in its hands.
	parser   eventstream.Parser
	body     body          // its timeout may be changed by others
	counter  *eventCounter // with the tags of the open stream
	openedAt time.Duration // since processStart
	failures int32         // attempts since the last stream opened
	place    int32         // among the hub's; guarded by that's mu
	opened   bool
	first    bool // no event yet on this stream
	awaits   bool // the second request still waits for its event

	attention atomic.Bool // isStopped may say something: most turns do not ask it
}

// A client is what has a source. Its methods are called by the goroutine that has the source in its hands, after those of the
// observer, and must not block.
type client interface {
	// request is what the next attempt sends.
	request() Request
	// hasOpened: an event stream has opened, after a dial that began at begun.
	hasOpened(begun time.Time, a *answer)
	// event: e is valid only during the call.
	event(at time.Time, e *eventstream.Event)
	// answered: the second request got the status that it should.
	answered(at time.Time, status int)
	// makeSecond makes a second request of which a part is a function of the first event, and calls startFollow.
	makeSecond(f *followUp, e *firstEvent)
	// hasClosed: the attempt or the stream has ended.
	hasClosed(at time.Time, c Close, f *failure)
	// again makes the next attempt, whose time has come.
	again()
	// ended is the last call: nobody has the source in hand any more.
	ended()
}

// A Request asks for an event stream.
type Request struct {
	URL    string
	Method string // "" for GET
	Header http.Header
	Body   string
}

// Check says why the request cannot be sent.
func (r *Request) Check() error {
	if _, err := parseURL(r.URL); err != nil {
		return err
	}
	for name, values := range r.Header {
		if err := checkHeader(name, strings.Join(values, ", ")); err != nil {
			return err
		}
	}
	if r.Body != "" && (r.Method == "" || r.Method == http.MethodGet) {
		return fmt.Errorf("a body: %w", errBodyOfGet)
	}
	return nil
}

// start readies a source whose options are set: its observer may be one that has streams cut.
func (s *source) start(o Observer) {
	s.observe(o)
	s.reconnect.Store(int32(s.opts.reconnect))
	s.body.timeout.Store(int64(s.opts.idleTimeout))
}

// attach makes the connection reachable for stop, and returns false where that has come.
func (s *source) attach(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = conn
	return s.moment().stopped == ""
}

// stop ends the source for good, once; only the first reason counts. It does not
// wait. The connection is closed without TLS's close_notify, which could block.
func (s *source) stop(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.momentToSet()
	if now.stopped != "" {
		return
	}
	now.stopped = why
	s.attention.Store(true)
	if now.cutting != nil {
		close(now.cutting.over)
	}
	if now.cancel != nil {
		now.cancel()
	}
	if s.raw != nil {
		_ = s.raw.Close()
	}
	if now.timer != nil && now.timer.Stop() {
		s.end() // nobody else has the source in its hands
	}
}

// isStopped says that the stream is to end: the source was stopped, or its second request failed. c is the cut that was
// asked for, nil mostly.
func (s *source) isStopped() (stopped bool, c *cutting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.moment()
	stopped = now.stopped != "" || now.follow != nil && now.follow.failed != nil
	if !stopped && now.cutting == nil {
		s.attention.Store(false)
	}
	return stopped, now.cutting
}

// end gives the source up.
func (s *source) end() { s.client.ended() }

// A moment is what a source has while it dials, waits to dial, is cut or is stopped: most of thousands are open, and have none.
type moment struct {
	cancel  context.CancelFunc // of a dial
	timer   *time.Timer        // until the next one
	follow  *followUp          // the second request of the open stream; nil without one
	cutting *cutting           // of the open stream; nil mostly
	stopped Reason             // why it is to end; empty while it is not
}

var noMoment moment

// moment is that of the source, to be read. The caller holds mu.
func (s *source) moment() *moment {
	if s.now == nil {
		return &noMoment
	}
	return s.now
}

// momentToSet is the same, to be written.
func (s *source) momentToSet() *moment {
	if s.now == nil {
		s.now = new(moment)
	}
	return s.now
}

// passed lets the moment go where nothing is left in it. The caller holds mu.
func (s *source) passed() {
	if m := s.moment(); m.cancel == nil && m.timer == nil && m.follow == nil && m.cutting == nil && m.stopped == "" {
		s.now = nil
	}
}

// facets are an observer as those of more than Observer that it is.
type facets struct {
	blocks   BlockObserver
	answered AnswerObserver
	head     HeadObserver
	last     ResumeObserver
	cuts     CutObserver // where somebody cuts the stream
}

var noFacets facets

// facets are those of the observer, to be read.
func (s *source) facets() *facets {
	if s.sees == nil {
		return &noFacets
	}
	return s.sees
}

// observe has an observer told of the source, and gives the source to whoever cuts its streams.
func (s *source) observe(o Observer) {
	var sees facets
	sees.blocks, _ = o.(BlockObserver)
	sees.head, _ = o.(HeadObserver)
	sees.last, _ = o.(ResumeObserver)
	sees.cuts, _ = o.(CutObserver)
	if s.observer = o; s.opts.rarely().then != nil {
		s.observer = sees.lock(o)
	}
	if sees.cuts != nil && !sees.cuts.CutBy(s) {
		sees.cuts = nil
	}
	if sees != noFacets {
		s.sees = &sees
	}
}
