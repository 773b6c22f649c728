package sse

import (
	"github.com/grafana/sobek"
)

// listeners are the event handlers of one EventSource. On the event loop only.
type listeners struct {
	handlers map[string]*sobek.Object // onopen, onmessage, onerror, by type
	added    map[string][]listener    // addEventListener
}

type listener struct {
	value *sobek.Object // a function, or an object with handleEvent
	once  bool
}

// setHandler sets the handler of a type; nil removes it.
func (l *listeners) setHandler(kind string, fn *sobek.Object) {
	if fn == nil {
		delete(l.handlers, kind)
		return
	}
	if l.handlers == nil {
		l.handlers = make(map[string]*sobek.Object, 1)
	}
	l.handlers[kind] = fn
}

// add adds a listener unless it is there already (DOM standard, section 2.7).
func (l *listeners) add(kind string, value *sobek.Object, once bool) {
	for _, have := range l.added[kind] {
		if have.value == value {
			return
		}
	}
	if l.added == nil {
		l.added = make(map[string][]listener, 1)
	}
	l.added[kind] = append(l.added[kind], listener{value: value, once: once})
}

// remove removes a listener; the list is never changed in place, so that a listener
// may remove another while an event is dispatched.
func (l *listeners) remove(kind string, value *sobek.Object) {
	var rest []listener
	for _, have := range l.added[kind] {
		if have.value != value {
			rest = append(rest, have)
		}
	}
	if len(rest) == 0 {
		delete(l.added, kind)
		return
	}
	l.added[kind] = rest
}

// has says whether a listener is still there.
func (l *listeners) has(kind string, value *sobek.Object) bool {
	for _, have := range l.added[kind] {
		if have.value == value {
			return true
		}
	}
	return false
}

// wanted returns the types that have a handler or listener, nil for none.
func (l *listeners) wanted() *map[string]struct{} {
	if len(l.handlers) == 0 && len(l.added) == 0 {
		return nil
	}
	types := make(map[string]struct{}, len(l.handlers)+len(l.added))
	for kind := range l.handlers {
		types[kind] = struct{}{}
	}
	for kind := range l.added {
		types[kind] = struct{}{}
	}
	return &types
}
