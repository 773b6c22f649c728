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

// An eventSource is the JavaScript half of a stream. Its fields change in tasks of the event loop.
type eventSource struct {
	*sseclient.Stream
	session *session
	opts    sourceOptions
	obj     *sobek.Object
	url     string

	connectMs  float64
	origin     string
	properties []property
	status     int16
	ready      readyState

	// pending counts tasks that are queued and not done: these may still add listeners.
	pending   atomic.Int32
	listeners listeners
}

// newEventSource is the constructor (WHATWG HTML 9.2.2). The dial starts at once; its result arrives in later turns of
// the event loop.
func (m *module) newEventSource(call sobek.ConstructorCall) *sobek.Object {
	rt, state := m.vu.Runtime(), network.State(m.vu, importPath)
	if len(call.Arguments) == 0 {
		panic(rt.NewTypeError("EventSource: a URL is required"))
	}
	u, err := sseclient.ParseURL(call.Argument(0).String())
	if errors.Is(err, sseclient.ErrScheme) { // the attempt fails
		u, err = url.Parse(call.Argument(0).String())
	}
	if err != nil {
		panic(syntaxError(rt, "EventSource: "+err.Error()))
	}
	s := &eventSource{url: call.Argument(0).String()}
	s.opts.setDefaults(state)
	if err := parseOptions(rt, call.Argument(1), &s.opts); err != nil {
		panic(rt.NewTypeError("EventSource: " + err.Error()))
	}
	describeRequest(&s.opts.tags, state.Options.SystemTags, u, cmp.Or(s.opts.method, http.MethodGet))
	s.opts.Debug = debugOf(state, &s.opts.tags)
	s.session = m.currentSession()
	s.session.hold()
	s.obj = rt.NewDynamicObject(s)
	must(rt, s.obj.SetPrototype(call.This.Prototype())) // new.target's, if a class extends ours

	s.Stream = s.session.Add(&s.opts.Options, s.callbacks())
	s.post(func() error { return nil }) // until this turn of the loop is over a listener may be added: see event
	s.Start()
	return s.obj
}

// callbacks returns those of the ledger, followed by the samples and the events of JavaScript.
func (s *eventSource) callbacks() sseclient.Callbacks {
	var on sseclient.Callbacks
	if s.opts.ledger != nil {
		on = s.opts.ledger.Callbacks()
	}
	on.Request = s.request
	if s.opts.renew != nil {
		on.Renew = s.renew
	}
	if second := s.opts.secondRequest; second != nil {
		on.FollowUp = s.followUp
		if second.inGo != nil {
			on.FollowUp = second.inGo.FollowUp
		}
	}
	s.session.measure(&s.opts.tags, &on)
	on.Opened, on.Event = after(on.Opened, s.opened), after(on.Event, s.event)
	on.Closed = after(on.Closed, s.closed)
	if on.FollowUp != nil {
		on.Answered = after(on.Answered, s.answered)
	}
	on.Ended = s.ended
	return on
}

// after returns a callback that calls one after the other.
func after[T any](first, second func(time.Time, T)) func(time.Time, T) {
	return func(at time.Time, value T) {
		first(at, value)
		second(at, value)
	}
}

// post queues a task of this source for the event loop.
func (s *eventSource) post(task func() error) {
	s.pending.Add(1)
	s.session.queue(func() error {
		defer s.pending.Add(-1)
		return task()
	})
}

// request returns what the next attempt sends. renew may change the options only while no attempt is made.
func (s *eventSource) request() sseclient.Request {
	return sseclient.Request{URL: s.url, Method: s.opts.method, Header: s.opts.header, Body: s.opts.body}
}

func (s *eventSource) opened(started time.Time, r *sseclient.Response) {
	status, origin, at := r.Status, sseclient.Origin(r.URL), r.At
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		s.ready, s.status, s.origin, s.connectMs = stateOpen, int16(status), origin, metrics.D(at.Sub(started)) // #nosec G115 -- three digits
		return s.fire(plainEvent, "open", at, nil)
	})
}

// event queues a task only if JavaScript listens, or if a queued task may add a listener: a script may set onmessage right after the
// constructor or in onopen.
func (s *eventSource) event(at time.Time, e *eventstream.Event) {
	switch {
	case s.listeners.want(e.Name):
		s.queueMessage(s.post, at, e)
	case s.pending.Load() > 0:
		s.queueMessage(s.session.queue, at, e)
	}
}

func (s *eventSource) answered(at time.Time, r *sseclient.Response) {
	status := r.Status
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		return s.fire(plainEvent, "then", at, func(rt *sobek.Runtime, ev *sobek.Object) { must(rt, ev.Set("status", status)) })
	})
}

// ended handles the last callback. The session lasts until its task is done.
func (s *eventSource) ended() {
	s.post(func() error {
		s.ready = stateClosed
		return nil
	})
	s.session.release()
}

// close implements close() (WHATWG HTML 9.2.2). It runs on the event loop: no event is dispatched after it.
func (s *eventSource) close() {
	s.ready = stateClosed
	s.Stop(sseclient.ReasonClient)
}

// drop implements drop(unbuffered).
func (s *eventSource) drop(atOnce bool) bool {
	if s.ready != stateOpen || !s.Drop(atOnce) {
		return false
	}
	s.ready = stateConnecting // the stream may open again before the event loop learns of its end
	return true
}

// whileOpen calls an action on the stream if the script knows it as open. An error is thrown.
func (s *eventSource) whileOpen(act func() (bool, error)) bool {
	if s.ready != stateOpen {
		return false
	}
	done, err := act()
	if err != nil {
		common.Throw(s.session.m.vu.Runtime(), err)
	}
	return done
}

// must throws an error that no script can cause.
func must(rt *sobek.Runtime, err error) {
	if err != nil {
		common.Throw(rt, err)
	}
}

// syntaxError returns the error that the standard requires for a URL that cannot be parsed.
func syntaxError(rt *sobek.Runtime, message string) sobek.Value {
	e, err := rt.New(rt.GlobalObject().Get("SyntaxError"), rt.ToValue(message))
	if err != nil {
		return rt.NewTypeError(message)
	}
	return e
}
