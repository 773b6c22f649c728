package sse

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/k6/network"
)

// A readyState is a state of an EventSource (WHATWG HTML 9.2.2).
type readyState uint8

const (
	stateConnecting readyState = iota
	stateOpen
	stateClosed
)

// An eventSource is the JavaScript part of a stream. Its fields change only in tasks of the event loop, except Stream,
// Meter and pending.
type eventSource struct {
	*sseclient.Stream
	Meter
	session *session
	opts    sourceOptions
	obj     *sobek.Object

	connectMs float64 // from the start of the dial to the header, of the last stream that opened
	origin    string  // of the URL after redirects
	status    int16   // HTTP status of the latest response; 0: none
	ready     readyState

	pending       atomic.Int32                    // number of queued tasks, which may add listeners
	listenerTypes atomic.Pointer[map[string]bool] // types of events with listeners; nil: none so far
}

// connect implements the constructor (WHATWG HTML 9.2.2). The first attempt starts at once, and its result arrives in a
// later turn of the event loop.
func (m *Module) connect(obj *sobek.Object, rawURL string, options sobek.Value) sourceObject {
	rt, state := m.vu.Runtime(), network.State(m.vu, importPath)
	s := &eventSource{obj: obj}
	s.opts.request.URL = rawURL
	u, err := sseclient.ParseURL(s.opts.request.URL)
	if errors.Is(err, sseclient.ErrScheme) { // not a syntax error; the connection attempt reports the scheme
		u, err = url.Parse(s.opts.request.URL)
	}
	if err != nil {
		panic(syntaxError(rt, "EventSource: "+err.Error()))
	}
	s.opts.setDefaults(state)
	if err := parseOptions(rt, options, &s.opts); err != nil {
		panic(rt.NewTypeError("EventSource: " + err.Error()))
	}
	describeRequest(&s.opts.tags, state.Options.SystemTags, u, cmp.Or(s.opts.request.Method, http.MethodGet))
	s.opts.Debug = debugOf(state, &s.opts.tags)
	var callbacks sseclient.Callbacks
	if s.opts.ledger != nil {
		callbacks = s.opts.ledger.Callbacks() // before acquire, because it may throw
	}
	s.session = m.currentSession()
	s.session.acquire()
	s.addCallbacks(&callbacks)
	s.Stream = s.session.Add(&s.opts.Options, &callbacks, s)
	s.post(func() error { return nil }) // counts this turn of the event loop as pending, because it may add a listener
	s.Start()
	return sourceObject{s}
}

// addCallbacks adds the callbacks of the stream to those of its ledger. Each callback updates the ledger, then updates
// the samples, and then queues the JavaScript events.
func (s *eventSource) addCallbacks(callbacks *sseclient.Callbacks) {
	callbacks.Request = func(*sseclient.Stream) sseclient.Request { return s.opts.request }
	if s.opts.renew != nil {
		callbacks.Renew = func(_ *sseclient.Stream, proceed func(error)) { s.renew(proceed) }
	}
	if s.opts.secondRequest != nil {
		callbacks.FollowUp = func(_ *sseclient.Stream, e *eventstream.Event, f *sseclient.FollowUp) bool { return s.followUp(e, f) }
	}
	s.session.measure(&s.opts.tags, callbacks)
	callbacks.Opened, callbacks.Event, callbacks.Closed = chain(callbacks.Opened, s.opened), chain(callbacks.Event, s.event), chain(callbacks.Closed, s.closed)
	if callbacks.FollowUp != nil {
		callbacks.Answered = chain(callbacks.Answered, s.answered)
	}
	callbacks.Ended = func(*sseclient.Stream) { s.ended() }
}

func (s *eventSource) post(task func() error) {
	s.pending.Add(1)
	s.session.queue(func() error {
		defer s.pending.Add(-1)
		return task()
	})
}

func (s *eventSource) opened(_ *sseclient.Stream, started time.Time, r *sseclient.Response) {
	status, origin, at := r.Status, sseclient.Origin(r.URL), r.At
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		s.ready, s.status, s.origin, s.connectMs = stateOpen, int16(status), origin, metrics.D(at.Sub(started)) // #nosec G115 -- three digits
		return s.fire(false, "open", at)
	})
}

// event queues a task for an event only if there is a listener, or if a pending task may add one. A script may set
// onmessage directly after the constructor, or in onopen.
func (s *eventSource) event(_ *sseclient.Stream, at time.Time, e *eventstream.Event) {
	switch {
	case s.hasListener(e.Name):
		s.queueMessage(s.post, at, e)
	case s.pending.Load() > 0:
		s.queueMessage(s.session.queue, at, e)
	}
}

// answered queues the then event, which reports the response to the second request.
func (s *eventSource) answered(_ *sseclient.Stream, at time.Time, r *sseclient.Response) {
	status := r.Status
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		return s.fire(false, "then", at, "status", status)
	})
}

// ended closes the source after the last callback of the stream. Its task runs before the session ends.
func (s *eventSource) ended() {
	s.post(func() error {
		s.ready = stateClosed
		return nil
	})
	s.session.release()
}

// Must throws err as a JavaScript exception, unless it is nil.
func Must(rt *sobek.Runtime, err error) {
	if err != nil {
		common.Throw(rt, err)
	}
}

// syntaxError returns the error for a URL that cannot be parsed. The standard requires the DOMException "SyntaxError",
// which k6 does not have; the JavaScript error with this name takes its place.
func syntaxError(rt *sobek.Runtime, message string) sobek.Value {
	e, err := rt.New(rt.GlobalObject().Get("SyntaxError"), rt.ToValue(message))
	if err != nil {
		return rt.NewTypeError(message)
	}
	return e
}
