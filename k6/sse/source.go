package sse

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/network"
	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// readyState is section 9.2.2 of the HTML standard.
type readyState uint8

const (
	stateConnecting readyState = iota
	stateOpen
	stateClosed
)

// source is the Go half of an EventSource. At any time it is in the hands of one
// goroutine (dialing or reading), of the poller (reading) or of a timer (waiting to dial
// again), until ended has been posted.
type source struct {
	hub   *hub
	state *lib.State
	obj   *sobek.Object // the JS half; on the event loop only
	url   string
	opts  sourceOptions

	// What JS sees. On the event loop only.
	ready     readyState
	status    int
	connectMs float64
	origin    string
	own       []property

	listeners listeners
	// pending counts tasks posted and not done: these may still add listeners.
	pending   atomic.Int32
	reconnect atomic.Int32 // a reconnectMode
	// idleTimeout is a time.Duration: JS may change it while the stream is read.
	idleTimeout atomic.Int64
	dropped     atomic.Int32 // how it connects again after drop

	mu      sync.Mutex // guards what follows: how stop reaches the goroutine or timer
	raw     io.Closer
	cancel  context.CancelFunc
	timer   *time.Timer
	follow  *followUp // the second request of the open stream; nil without one
	stopped Reason    // why it is to end; empty while it is not
	cutting *cutting  // of the open stream; nil mostly

	// Of the goroutine that has the source in its hands.
	parser   eventstream.Parser
	body     body
	openTags metrics.TagsAndMeta
	counter  *eventCounter
	openedAt time.Time
	failures int32 // attempts since the last stream opened
	opened   bool
	first    bool // no event yet on this stream
	awaits   bool // the second request still waits for its event
}

// newEventSource is the constructor, section 9.2.2. The dial begins at once; what it
// brings is told in later turns of the event loop.
func (m *module) newEventSource(call sobek.ConstructorCall) *sobek.Object {
	rt, state := m.vu.Runtime(), network.State(m.vu, ImportPath)
	if len(call.Arguments) == 0 {
		panic(rt.NewTypeError("EventSource: a URL is required"))
	}
	u, err := parseURL(call.Argument(0).String())
	if err != nil {
		panic(syntaxError(rt, "EventSource: "+err.Error()))
	}
	s := &source{state: state, url: call.Argument(0).String()}
	s.opts.tags, s.opts.maxRedirects = state.Tags.GetCurrentValues(), redirectLimit(state)
	if err := parseOptions(rt, call.Argument(1), &s.opts); err != nil {
		panic(rt.NewTypeError("EventSource: " + err.Error()))
	}
	describeRequest(&s.opts.tags, state.Options.SystemTags, u, cmp.Or(s.opts.rarely().method, http.MethodGet))
	s.opts.findCutter(s)
	s.reconnect.Store(int32(s.opts.reconnect))
	s.idleTimeout.Store(int64(s.opts.idleTimeout))
	s.hub = m.currentHub()
	s.obj = rt.NewDynamicObject(s)
	must(rt, s.obj.SetPrototype(call.This.Prototype())) // new.target's, where a class extends ours

	s.hub.add(s)
	// Until this turn of the loop is over a listener may be added: see dispatch.
	s.post(func() error { return nil })
	go s.connect()
	return s.obj
}

// post queues a task about this source for the event loop.
func (s *source) post(t task) {
	s.pending.Add(1)
	s.hub.post(func() error {
		defer s.pending.Add(-1)
		return t()
	})
}

// attach makes the connection reachable for stop, and returns false where that has come.
func (s *source) attach(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = conn
	return s.stopped == ""
}

// stop ends the source for good, once; only the first reason counts. It does not
// wait. The connection is closed without TLS's close_notify, which could block.
func (s *source) stop(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped != "" {
		return
	}
	s.stopped = why
	if s.cutting != nil {
		close(s.cutting.over)
	}
	if s.cancel != nil {
		s.cancel()
	}
	if s.raw != nil {
		_ = s.raw.Close()
	}
	if s.timer != nil && s.timer.Stop() {
		s.end() // nobody else has the source in its hands
	}
}

// isStopped says that the stream is to end: the source was stopped, or its second request failed. c is the cut that was
// asked for, nil mostly.
func (s *source) isStopped() (stopped bool, c *cutting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped != "" || s.follow != nil && s.follow.failed != nil, s.cutting
}

// end gives the source up: its last task.
func (s *source) end() {
	s.post(func() error {
		s.ready = stateClosed
		s.hub.remove(s)
		return nil
	})
}

// must throws an error that no script can cause.
func must(rt *sobek.Runtime, err error) {
	if err != nil {
		common.Throw(rt, err)
	}
}

// syntaxError makes the error that the standard asks for on a URL it cannot parse.
func syntaxError(rt *sobek.Runtime, message string) sobek.Value {
	e, err := rt.New(rt.GlobalObject().Get("SyntaxError"), rt.ToValue(message))
	if err != nil {
		return rt.NewTypeError(message)
	}
	return e
}
