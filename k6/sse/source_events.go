package sse

import (
	"errors"
	"time"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// fire calls the handler and the listeners of a type with a new event object. fill adds the attributes of that type.
// fire returns the first exception, which ends the iteration. It must run on the event loop, and has no effect after an
// interrupt.
func (s *eventSource) fire(class eventClass, kind string, at time.Time, fill func(rt *sobek.Runtime, ev *sobek.Object)) error {
	if !s.listeners.has([]byte(kind)) || s.session.Interrupted() {
		return nil
	}
	rt := s.session.m.vu.Runtime()
	ev := rt.NewObject()
	must(rt, ev.Set("type", kind))
	must(rt, ev.Set("target", s.obj))
	must(rt, ev.Set("timeStamp", epochMs(at)))
	if fill != nil {
		fill(rt, ev)
	}
	must(rt, ev.SetPrototype(s.session.m.eventPrototype(class))) // last, because Set also searches the prototype
	return s.dispatch(kind, ev)
}

// dispatch calls the handler and the listeners of a type with an event, up to the first exception.
func (s *eventSource) dispatch(kind string, ev *sobek.Object) error {
	outer := s.session.m.dispatched // not nil if a listener dispatches another event
	s.session.m.dispatched = ev
	defer func() { s.session.m.dispatched = outer }()
	for _, l := range s.listeners.all() {
		if l.kind != kind {
			continue
		}
		value := s.listeners.function(l)
		if value == nil {
			continue // an earlier listener removed it
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
//go:noinline // otherwise it would enlarge the stacks of streams without listeners
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
		return s.fire(messageEvent, kind, at, func(rt *sobek.Runtime, ev *sobek.Object) {
			must(rt, ev.Set("data", data))
			must(rt, ev.Set("lastEventId", id))
			must(rt, ev.Set("origin", s.origin))
			must(rt, ev.Set("comment", comment))
			must(rt, ev.Set("receivedAt", epochMs(at)))
		})
	})
}

// closed queues the change of state and the error event after the end of an attempt or a stream. The standard describes
// both as "reestablish the connection" and "fail the connection" (section 9.2.3). After the script has called close(),
// neither happens.
func (s *eventSource) closed(at time.Time, c sseclient.Close) {
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
		return s.fire(plainEvent, "error", at, func(rt *sobek.Runtime, ev *sobek.Object) {
			must(rt, ev.Set("reason", string(c.Reason)))
			must(rt, ev.Set("message", c.Message()))
			must(rt, ev.Set("status", c.Status))
			must(rt, ev.Set("willReconnect", c.Retry >= 0))
			must(rt, ev.Set("retryMs", retryMs(rt, c.Retry)))
		})
	})
}

// retryMs returns the milliseconds until the next attempt, or null if there is none.
func retryMs(rt *sobek.Runtime, d time.Duration) sobek.Value {
	if d < 0 {
		return sobek.Null()
	}
	return rt.ToValue(float64(d.Microseconds()) / 1000)
}
