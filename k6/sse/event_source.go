package sse

import (
	"cmp"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/redirect"
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

// eventSource is the JS half of a source. What it does with it is done in tasks of the event loop.
type eventSource struct {
	source
	given sourceOptions
	obj   *sobek.Object // on the event loop only
	url   string

	// What JS sees. On the event loop only.
	connectMs float64
	origin    string
	own       *[]property // nil: none
	status    int16
	ready     readyState

	// pending counts tasks posted and not done: these may still add listeners.
	pending   atomic.Int32
	listeners listeners
}

var _ client = (*eventSource)(nil)

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
	s := &eventSource{url: call.Argument(0).String()}
	s.client, s.opts = s, &s.given
	s.opts.tags, s.opts.maxRedirects = state.Tags.GetCurrentValues(), int32(redirectLimit(state)) //nolint:gosec // G115: k6 bounds the option
	if err := parseOptions(rt, call.Argument(1), s.opts); err != nil {
		panic(rt.NewTypeError("EventSource: " + err.Error()))
	}
	describeRequest(&s.opts.tags, state.Options.SystemTags, u, cmp.Or(s.opts.rarely().method, http.MethodGet))
	s.start(s.opts.ledger)
	s.hub = m.currentHub()
	s.obj = rt.NewDynamicObject(s)
	must(rt, s.obj.SetPrototype(call.This.Prototype())) // new.target's, where a class extends ours

	s.hub.add(&s.source)
	// Until this turn of the loop is over a listener may be added: see dispatch.
	s.post(func() error { return nil })
	go s.connect()
	return s.obj
}

// post queues a task about this source for the event loop.
func (s *eventSource) post(t task) {
	s.pending.Add(1)
	s.hub.post(func() error {
		defer s.pending.Add(-1)
		return t()
	})
}

// request is made of the options, which renew may have changed. Nobody else has the source in hand.
func (s *eventSource) request() Request {
	return Request{URL: s.url, Method: s.given.rarely().method, Header: s.given.header, Body: s.given.rarely().body}
}

func (s *eventSource) hasOpened(begun time.Time, a *answer) {
	status, from, openedAt := a.status, redirect.Origin(a.url), a.at
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		s.ready, s.status, s.origin, s.connectMs = stateOpen, int16(status), from, metrics.D(openedAt.Sub(begun)) //nolint:gosec // G115: three digits
		return s.fire(plainEvent, "open", openedAt, nil)
	})
}

// event queues a task only where JS listens.
func (s *eventSource) event(at time.Time, e *eventstream.Event) {
	switch {
	case s.listeners.want(e.Name):
		s.queueMessage(s.post, at, e)
	case s.pending.Load() > 0:
		// A task on its way may add a listener, as a script does that sets onmessage
		// right after the constructor or in onopen.
		s.queueMessage(s.hub.post, at, e)
	}
}

func (s *eventSource) answered(at time.Time, status int) {
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		return s.fire(plainEvent, "then", at, func(rt *sobek.Runtime, ev *sobek.Object) { must(rt, ev.Set("status", status)) })
	})
}

func (s *eventSource) makeSecond(f *followUp, e *firstEvent) {
	s.post(func() error {
		if s.ready == stateClosed || s.hub.interrupted.Load() || !s.waitsFor(f) {
			return nil
		}
		made, err := s.opts.rare.then.withFunctionsCalled(s.hub.vu.Runtime(), e)
		if err == nil {
			s.startFollow(f, made, e)
		}
		return err
	})
}

// ended is the last task.
func (s *eventSource) ended() {
	s.post(func() error {
		s.ready = stateClosed
		s.hub.remove(&s.source)
		return nil
	})
}

// close is the method close(), section 9.2.2. On the event loop: no event is
// dispatched after it.
func (s *eventSource) close() {
	s.ready = stateClosed
	s.stop(ReasonClient)
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
