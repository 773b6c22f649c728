package sse

import (
	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/k6/network"
)

// defineAttributes defines the attributes of WHATWG HTML 9.2.2, and the attributes that this module adds.
func (m *Module) defineAttributes(rt *sobek.Runtime, proto *sobek.Object) {
	attribute := func(name string, get func(s *eventSource) any, set func(s *eventSource, v sobek.Value)) {
		getter := rt.ToValue(func(c sobek.FunctionCall) sobek.Value { return rt.ToValue(get(m.sourceOf(c.This))) })
		var setter sobek.Value // nil: the attribute is read-only, and setting it is a TypeError in strict mode
		if set != nil {
			setter = rt.ToValue(func(c sobek.FunctionCall) sobek.Value {
				set(m.sourceOf(c.This), c.Argument(0))
				return sobek.Undefined()
			})
		}
		Must(rt, proto.DefineAccessorProperty(name, getter, setter, sobek.FLAG_TRUE, sobek.FLAG_TRUE))
	}
	attribute("url", func(s *eventSource) any { return s.opts.request.URL }, nil)
	attribute("withCredentials", func(s *eventSource) any { return s.opts.withCredentials }, nil)
	attribute("readyState", func(s *eventSource) any { return int(s.ready) }, nil)
	attribute("status", func(s *eventSource) any { return int(s.status) }, nil)
	attribute("connectMs", func(s *eventSource) any { return s.connectMs }, nil)
	attribute("reconnect", func(s *eventSource) any { return s.Reconnects() }, func(s *eventSource, v sobek.Value) {
		if s.SetReconnect(v.ToBoolean()) {
			s.ready = stateClosed
		}
	})
	idleTimeout := func(s *eventSource) any { return float64(s.IdleTimeout().Microseconds()) / 1000 }
	attribute("idleTimeout", idleTimeout, func(s *eventSource, v sobek.Value) {
		timeout, err := network.Duration(v)
		if err != nil {
			panic(rt.NewTypeError("EventSource: idleTimeout: " + err.Error()))
		}
		s.SetIdleTimeout(timeout)
	})
	for _, kind := range []string{"open", "message", "error"} {
		handler := func(s *eventSource) any { return s.listeners.handler(kind) }
		attribute("on"+kind, handler, func(s *eventSource, v sobek.Value) {
			fn, _ := v.(*sobek.Object) // according to Web IDL, any other value counts as null
			s.listeners.setHandler(kind, fn)
		})
	}
}
