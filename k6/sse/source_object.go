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

// A source is its own JS object's handler: that costs 56 bytes, where an ordinary
// object that points to a Go value costs 800. What it lacks is own symbol properties.
var _ sobek.DynamicObject = (*source)(nil)

func (s *source) find(name string) int {
	return slices.IndexFunc(s.own, func(p property) bool { return p.name == name })
}

// Get returns a property the script has added; nil sends sobek on to the prototype.
func (s *source) Get(name string) sobek.Value {
	if i := s.find(name); i >= 0 {
		return s.own[i].value
	}
	return nil
}

// Set adds or changes such a property.
func (s *source) Set(name string, value sobek.Value) bool {
	if i := s.find(name); i >= 0 {
		s.own[i].value = value
	} else {
		s.own = append(s.own, property{name, value})
	}
	return true
}

// Has says whether the script has added it.
func (s *source) Has(name string) bool { return s.find(name) >= 0 }

// Delete removes it.
func (s *source) Delete(name string) bool {
	if i := s.find(name); i >= 0 {
		s.own = slices.Delete(s.own, i, i+1)
	}
	return true
}

// Keys lists them in the order they were added.
func (s *source) Keys() []string {
	names := make([]string, len(s.own))
	for i, p := range s.own {
		names[i] = p.name
	}
	return names
}
