package sse

import (
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A listener is called for one type of event.
type listener struct {
	kind    string
	value   *sobek.Object // a function, or an object with handleEvent
	handler bool          // set as onopen, onmessage or onerror, not added
	once    bool
}

// A listeners holds the listeners of one EventSource in the order in which they run. They change only on the event
// loop, each time by a new list, because readers use the old one meanwhile, and a listener may remove another one
// during a dispatch.
type listeners struct{ list atomic.Pointer[[]listener] }

// all returns the present listeners.
func (l *listeners) all() []listener {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

// want reports whether there is one for events of a name. From any goroutine.
//
//go:noinline // most streams have none, and their stacks no room for its frame
func (l *listeners) want(name []byte) bool {
	list := l.all()
	for _, have := range list {
		if have.kind == string(name) || len(name) == 0 && have.kind == "message" {
			return true
		}
	}
	return len(list) > 0 && !utf8.Valid(name) && l.want([]byte(eventstream.Text(name)))
}

// handler returns the handler of a type, nil for none.
func (l *listeners) handler(kind string) *sobek.Object {
	for _, have := range l.all() {
		if have.handler && have.kind == kind {
			return have.value
		}
	}
	return nil
}

// now returns the function to call for a listener that existed when the event was dispatched. It is nil if an earlier
// listener removed it; a handler may have been replaced.
func (l *listeners) now(current listener) *sobek.Object {
	if current.handler {
		return l.handler(current.kind)
	}
	if slices.Contains(l.all(), current) {
		return current.value
	}
	return nil
}

// setHandler sets the handler of a type; nil removes it. As section 8.1.8.1 of the HTML standard has it, it runs in the
// turn in which it was first set: another one takes its turn, one that is set after nil the last.
func (l *listeners) setHandler(kind string, fn *sobek.Object) {
	list := slices.Clone(l.all())
	at := slices.IndexFunc(list, func(have listener) bool { return have.handler && have.kind == kind })
	switch {
	case fn == nil && at >= 0:
		list = slices.Delete(list, at, at+1)
	case at >= 0:
		list[at].value = fn
	case fn != nil:
		list = append(list, listener{kind: kind, value: fn, handler: true})
	}
	l.list.Store(&list)
}

// add adds a listener unless it is there already (DOM standard, section 2.7).
func (l *listeners) add(kind string, value *sobek.Object, once bool) {
	list := l.all()
	if slices.ContainsFunc(list, added(kind, value)) {
		return
	}
	list = append(slices.Clip(list), listener{kind: kind, value: value, once: once})
	l.list.Store(&list)
}

func (l *listeners) remove(kind string, value *sobek.Object) {
	list := l.removed(added(kind, value))
	l.list.Store(&list)
}

func (l *listeners) removed(drop func(listener) bool) []listener {
	return slices.DeleteFunc(slices.Clone(l.all()), drop)
}

// added returns a filter for a listener that addEventListener added.
func added(kind string, value *sobek.Object) func(listener) bool {
	return func(have listener) bool { return !have.handler && have.kind == kind && have.value == value }
}
