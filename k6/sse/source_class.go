package sse

import (
	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/k6/network"
)

// classWrapper wraps a Go constructor in a class, which rejects a call without new.
var classWrapper = sobek.MustCompile("EventSource", "(native) => class EventSource extends native {}", true)

// eventSourceClass creates the class EventSource. It is called once per VU.
func (m *Module) eventSourceClass() *sobek.Object {
	rt := m.vu.Runtime()
	result, err := rt.RunProgram(classWrapper)
	Must(rt, err)
	extend, _ := sobek.AssertFunction(result)
	result, err = extend(sobek.Undefined(), rt.ToValue(m.newEventSource))
	Must(rt, err)
	class := result.ToObject(rt)
	proto := class.Get("prototype").ToObject(rt)
	for i, name := range []string{"CONNECTING", "OPEN", "CLOSED"} {
		for _, object := range []*sobek.Object{class, proto} {
			Must(rt, object.DefineDataProperty(name, rt.ToValue(i), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_TRUE))
		}
	}
	Must(rt, class.DefineDataProperty("length", rt.ToValue(1), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE))
	nameClass(rt, proto, "EventSource")
	m.defineAttributes(rt, proto)
	m.defineMethods(rt, proto)
	return class
}

func (m *Module) defineMethods(rt *sobek.Runtime, proto *sobek.Object) {
	function := func(name string, do func(s *eventSource, c sobek.FunctionCall) sobek.Value) {
		fn := rt.ToValue(func(c sobek.FunctionCall) sobek.Value { return do(m.sourceOf(c.This), c) })
		Must(rt, proto.DefineDataProperty(name, fn, sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_TRUE))
	}
	method := func(name string, do func(s *eventSource, c sobek.FunctionCall)) {
		function(name, func(s *eventSource, c sobek.FunctionCall) sobek.Value {
			do(s, c)
			return sobek.Undefined()
		})
	}
	method("close", func(s *eventSource, _ sobek.FunctionCall) { s.close() })
	function("drop", func(s *eventSource, c sobek.FunctionCall) sobek.Value {
		return rt.ToValue(s.drop(c.Argument(0).ToBoolean()))
	})
	function("vanish", func(s *eventSource, _ sobek.FunctionCall) sobek.Value { return rt.ToValue(s.whileOpen(s.Vanish)) })
	function("slow", func(s *eventSource, c sobek.FunctionCall) sobek.Value {
		rate := c.Argument(0).ToFloat()
		if !(rate >= 0) {
			panic(rt.NewTypeError("EventSource.slow: the rate must be at least 0 bytes per second, got %s", c.Argument(0)))
		}
		return rt.ToValue(s.whileOpen(func() (bool, error) { return s.Slow(rate) }))
	})
	method("addEventListener", func(s *eventSource, c sobek.FunctionCall) {
		kind, value := listenerArguments(rt, c)
		if value == nil {
			return
		}
		once := false
		if options, ok := c.Argument(2).(*sobek.Object); ok {
			if v := options.Get("once"); v != nil {
				once = v.ToBoolean()
			}
		}
		s.listeners.add(kind, value, once)
	})
	function("dispatchEvent", func(s *eventSource, c sobek.FunctionCall) sobek.Value {
		ev, ok := c.Argument(0).(*sobek.Object)
		if !ok || ev.Get("type") == nil {
			panic(rt.NewTypeError("EventSource.dispatchEvent: the event must be an object with a type, got %s", network.Quote(c.Argument(0))))
		}
		Must(rt, ev.Set("target", s.obj))
		Must(rt, s.dispatch(ev.Get("type").String(), ev))
		return rt.ToValue(true) // events cannot be canceled
	})
	method("removeEventListener", func(s *eventSource, c sobek.FunctionCall) {
		if kind, value := listenerArguments(rt, c); value != nil {
			s.listeners.remove(kind, value)
		}
	})
}

// listenerArguments parses the arguments type and callback. If callback is null or undefined, it returns nil. It throws
// if callback is missing, or is any other value that is not an object.
func listenerArguments(rt *sobek.Runtime, c sobek.FunctionCall) (string, *sobek.Object) {
	v := c.Argument(1)
	if sobek.IsNull(v) || sobek.IsUndefined(v) && len(c.Arguments) > 1 {
		return "", nil
	}
	l, ok := v.(*sobek.Object)
	if !ok {
		panic(rt.NewTypeError("EventSource: the listener for %q must be a function or an object", c.Argument(0).String()))
	}
	return c.Argument(0).String(), l
}

// sourceOf returns the Go part of an EventSource. It throws for other values.
func (m *Module) sourceOf(receiver sobek.Value) *eventSource {
	if obj, ok := receiver.(*sobek.Object); ok {
		if part := obj.GetSymbol(m.goPart); part != nil {
			if s, ok := part.Export().(*eventSource); ok { // a script may have defined another value
				return s
			}
		}
	}
	panic(m.vu.Runtime().NewTypeError("Illegal invocation: the receiver is not an EventSource"))
}
