package sse

import (
	_ "embed"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

//go:embed event_source.js
var eventSourceJS string

var eventSourceProgram = sobek.MustCompile("event_source.js", eventSourceJS, true)

// eventSourceClass creates the class EventSource and sets fire. It is called once per VU.
func (m *Module) eventSourceClass() sobek.Value {
	rt := m.vu.Runtime()
	define, err := rt.RunProgram(eventSourceProgram)
	Must(rt, err)
	call, _ := sobek.AssertFunction(define)
	result, err := call(sobek.Undefined(), rt.ToValue(m.connect))
	Must(rt, err)
	m.fire, _ = sobek.AssertFunction(result.ToObject(rt).Get("fire"))
	return result.ToObject(rt).Get("EventSource")
}

// A sourceObject is the Go part of an EventSource in JavaScript. event_source.js calls its methods.
type sourceObject struct{ s *eventSource }

func (o sourceObject) URL() string           { return o.s.opts.request.URL }
func (o sourceObject) WithCredentials() bool { return o.s.opts.withCredentials }
func (o sourceObject) ReadyState() int       { return int(o.s.ready) }
func (o sourceObject) Status() int           { return int(o.s.status) }
func (o sourceObject) ConnectMs() float64    { return o.s.connectMs }
func (o sourceObject) Reconnects() bool      { return o.s.Reconnects() }
func (o sourceObject) IdleTimeout() float64  { return float64(o.s.IdleTimeout().Microseconds()) / 1000 }

func (o sourceObject) SetReconnect(on sobek.Value) {
	if o.s.SetReconnect(on.ToBoolean()) {
		o.s.ready = stateClosed
	}
}

func (o sourceObject) SetIdleTimeout(v sobek.Value) {
	timeout, err := network.Duration(v)
	if err != nil {
		panic(o.s.session.m.vu.Runtime().NewTypeError("EventSource: idleTimeout: " + err.Error()))
	}
	o.s.SetIdleTimeout(timeout)
}

// Listen stores the types of events with listeners. The goroutine that reads the stream may still be using the old
// types.
func (o sourceObject) Listen(types []string) {
	listenerTypes := make(map[string]bool, len(types))
	for _, kind := range types {
		listenerTypes[kind] = true
	}
	o.s.listenerTypes.Store(&listenerTypes)
}

// Close implements close() (WHATWG HTML 9.2.2). No event is dispatched after it.
func (o sourceObject) Close() {
	o.s.ready = stateClosed
	o.s.Stop(sseclient.ReasonClient)
}

// Drop returns false if readyState is not OPEN or the stream cannot be dropped.
func (o sourceObject) Drop(immediate bool) bool {
	if o.s.ready != stateOpen || !o.s.Drop(immediate) {
		return false
	}
	o.s.ready = stateConnecting // the stream may reopen before the event loop handles its end
	return true
}

// Vanish returns false if readyState is not OPEN, and otherwise the results of the stream's method Vanish. Slow does
// the same with the method Slow.
func (o sourceObject) Vanish() (bool, error) {
	if o.s.ready != stateOpen {
		return false, nil
	}
	return o.s.Vanish()
}

func (o sourceObject) Slow(bytesPerSecond float64) (bool, error) {
	if o.s.ready != stateOpen {
		return false, nil
	}
	return o.s.Slow(bytesPerSecond)
}
