package sse

import (
	"slices"

	"github.com/grafana/sobek"
)

// property is one that a script added to its EventSource, as in source.device = id.
type property struct {
	name  string
	value sobek.Value
}

// An eventSource is its own JS object's handler and answers for its attributes itself. That
// costs 56 bytes per source and next to nothing per VU, where an ordinary object that
// points to a Go value costs 800 and accessors on a prototype 15,000. What it lacks is
// own symbol properties, and attributes on the prototype for a class to override.
var _ sobek.DynamicObject = (*eventSource)(nil)

// Get returns an attribute (section 9.2.2) or a property the script has added; nil
// sends sobek on to the prototype.
func (s *eventSource) Get(name string) sobek.Value {
	rt := s.session.m.vu.Runtime()
	switch name {
	case "url":
		return rt.ToValue(s.url)
	case "withCredentials":
		return rt.ToValue(s.opts.cookies)
	case "readyState":
		return rt.ToValue(int(s.ready))
	case "status":
		return rt.ToValue(int(s.status))
	case "connectMs":
		return rt.ToValue(s.connectMs)
	case "reconnect":
		return rt.ToValue(s.Reconnects())
	case "idleTimeout":
		return rt.ToValue(float64(s.IdleTimeout().Microseconds()) / 1000)
	case "onopen", "onmessage", "onerror":
		if fn := s.listeners.handler(name[2:]); fn != nil {
			return fn
		}
		return sobek.Null()
	}
	if i := s.find(name); i >= 0 {
		return s.properties[i].value
	}
	return nil
}

// Set changes an attribute, or adds or changes a property. Read-only attributes refuse:
// a TypeError in strict mode, as everywhere in JS.
func (s *eventSource) Set(name string, value sobek.Value) bool {
	switch name {
	case "url", "withCredentials", "readyState", "status", "connectMs":
		return false
	case "reconnect":
		if s.SetReconnect(value.ToBoolean()) {
			s.ready = stateClosed
		}
		return true
	case "idleTimeout":
		within, err := parseDuration(value)
		if err != nil {
			panic(s.session.m.vu.Runtime().NewTypeError("EventSource: idleTimeout: " + err.Error()))
		}
		s.SetIdleTimeout(within)
		return true
	case "onopen", "onmessage", "onerror":
		fn, _ := value.(*sobek.Object) // Web IDL: anything but an object counts as null
		s.listeners.setHandler(name[2:], fn)
		return true
	}
	if i := s.find(name); i >= 0 {
		s.properties[i].value = value
		return true
	}
	s.properties = append(s.properties, property{name, value})
	return true
}

// Has reports whether Get knows the name.
func (s *eventSource) Has(name string) bool { return s.Get(name) != nil }

// Delete removes a property the script has added.
func (s *eventSource) Delete(name string) bool {
	if i := s.find(name); i >= 0 {
		s.properties = slices.Delete(s.properties, i, i+1)
		return true
	}
	return s.Get(name) == nil
}

// Keys lists the properties the script has added, in that order.
func (s *eventSource) Keys() []string {
	names := make([]string, len(s.properties))
	for i, p := range s.properties {
		names[i] = p.name
	}
	return names
}

func (s *eventSource) find(name string) int {
	return slices.IndexFunc(s.properties, func(p property) bool { return p.name == name })
}
