package sse

import (
	"errors"
	"slices"
	"time"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// fire calls the handler and the listeners of a type with a new event object. attributes are alternating names and
// values. fire returns the first exception, which ends the iteration. It must run on the event loop, and has no effect
// after an interrupt.
func (s *eventSource) fire(class eventClass, kind string, at time.Time, attributes ...any) error {
	if !s.listeners.has([]byte(kind)) || s.session.Interrupted() {
		return nil
	}
	rt := s.session.m.vu.Runtime()
	ev := rt.NewObject()
	for pair := range slices.Chunk(append([]any{"type", kind, "target", s.obj, "timeStamp", epochMs(at)}, attributes...), 2) {
		Must(rt, ev.Set(pair[0].(string), pair[1]))
	}
	Must(rt, ev.SetPrototype(s.session.m.events()[class])) // last, because Set also searches the prototype
	return s.dispatch(kind, ev)
}

// dispatch calls the handler and the listeners of a type with an event, up to the first exception.
func (s *eventSource) dispatch(kind string, ev *sobek.Object) error {
	Must(s.session.m.vu.Runtime(), ev.DefineDataProperty("currentTarget", s.obj, sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_FALSE))
	defer func() { _ = ev.Set("currentTarget", nil) }()
	for _, l := range s.listeners.all() {
		if l.kind != kind {
			continue
		}
		value := s.listeners.callee(l)
		if value == nil {
			continue // an earlier listener removed this one
		}
		if l.once {
			s.listeners.remove(kind, l.value)
		}
		if err := s.call(value, ev); err != nil {
			return err
		}
	}
	return nil
}

// call calls a listener: a function, with the EventSource as its `this`, or the method handleEvent of an object.
func (s *eventSource) call(l, ev *sobek.Object) error {
	var receiver sobek.Value = s.obj
	fn, ok := sobek.AssertFunction(l)
	if !ok {
		receiver = l
		if fn, ok = sobek.AssertFunction(l.Get("handleEvent")); !ok {
			return errors.New("EventSource: the listener has no function handleEvent")
		}
	}
	_, err := fn(receiver, ev)
	return err
}

// epochMs returns a time as a script receives it: milliseconds since 1970, with a fraction.
func epochMs(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

// queueMessage queues the dispatch of a copy of e. e itself is valid only during the call.
//
//go:noinline // if inlined, it would enlarge the stacks of streams without listeners
func (s *eventSource) queueMessage(post func(func() error), at time.Time, e *eventstream.Event) {
	kind := "message"
	if len(e.Name) > 0 {
		kind = eventstream.Text(e.Name)
	}
	data, id, comment := eventstream.Text(e.Data), eventstream.Text(e.ID), eventstream.Text(e.Comment)
	post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		return s.fire(messageEvent, kind, at,
			"data", data, "lastEventId", id, "origin", s.origin, "comment", comment, "receivedAt", epochMs(at))
	})
}

// closed queues the change of state and the error event after the end of an attempt or a stream: "reestablish the
// connection" and "fail the connection" in the standard (section 9.2.3). After the script has called close(), neither
// happens.
func (s *eventSource) closed(_ *sseclient.Stream, at time.Time, c sseclient.Close) {
	s.post(func() error {
		if s.ready == stateClosed {
			return nil
		}
		s.ready = stateConnecting
		if c.Retry < 0 {
			s.ready = stateClosed
		}
		if c.Status != 0 {
			s.status = int16(c.Status) // #nosec G115 -- three digits
		}
		return s.fire(plainEvent, "error", at, "reason", string(c.Reason), "message", c.Message(), "status", c.Status,
			"willReconnect", c.Retry >= 0, "retryMs", retryMs(c.Retry))
	})
}

// retryMs returns the milliseconds until the next attempt, or nil if no attempt follows.
func retryMs(d time.Duration) any {
	if d < 0 {
		return nil
	}
	return float64(d.Microseconds()) / 1000
}
