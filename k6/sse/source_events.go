package sse

import (
	"time"
	"unicode/utf8"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// hasListener reports whether there is a listener for events with the given name. Any goroutine may call it.
//
//go:noinline // if inlined, it would enlarge the stacks of streams without listeners
func (s *eventSource) hasListener(name []byte) bool {
	types := s.listenerTypes.Load()
	if types == nil {
		return false
	}
	return (*types)[string(name)] || len(name) == 0 && (*types)["message"] ||
		!utf8.Valid(name) && (*types)[eventstream.Text(name)]
}

// fire dispatches a new event. attributes are alternating names and values. fire returns the first exception of a
// listener, which ends the iteration. It must run on the event loop, and has no effect after an interrupt.
func (s *eventSource) fire(isMessage bool, kind string, at time.Time, attributes ...any) error {
	if !s.hasListener([]byte(kind)) || s.session.Interrupted() {
		return nil
	}
	rt := s.session.m.vu.Runtime()
	arguments := []sobek.Value{s.obj}
	for _, value := range append([]any{isMessage, kind, epochMs(at)}, attributes...) {
		arguments = append(arguments, rt.ToValue(value))
	}
	_, err := s.session.m.fire(sobek.Undefined(), arguments...)
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
		return s.fire(true, kind, at,
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
		return s.fire(false, "error", at, "reason", string(c.Reason), "message", c.Message(), "status", c.Status,
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
