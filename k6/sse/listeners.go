package sse

import (
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

type listener struct {
	kind    string
	value   *sobek.Object // a function, or an object with handleEvent
	handler bool          // set by onopen, onmessage or onerror
	once    bool          // the first event removes the listener
}

// listeners is the list of the listeners of one EventSource, in the order of their calls. It changes only on the
// event loop. Each change creates a new list, because the goroutine that reads the stream may still be using the
// old one. A listener may also remove another one during a dispatch.
type listeners struct{ list atomic.Pointer[[]listener] }

func (l *listeners) all() []listener {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

// has reports whether there is a listener for events with the given name. Any goroutine may call it.
//
//go:noinline // if inlined, it would enlarge the stacks of streams without listeners
func (l *listeners) has(name []byte) bool {
	list := l.all()
	for _, current := range list {
		if current.kind == string(name) || len(name) == 0 && current.kind == "message" {
			return true
		}
	}
	return len(list) > 0 && !utf8.Valid(name) && l.has([]byte(eventstream.Text(name)))
}

// handler returns the handler of a type, nil for none.
func (l *listeners) handler(kind string) *sobek.Object {
	for _, current := range l.all() {
		if current.handler && current.kind == kind {
			return current.value
		}
	}
	return nil
}

// callee returns the function or object to call for a listener that existed at the start of a dispatch. For a handler
// (onopen, onmessage or onerror), it returns the current one. It returns nil if an earlier listener removed this one.
func (l *listeners) callee(current listener) *sobek.Object {
	if current.handler {
		return l.handler(current.kind)
	}
	if slices.Contains(l.all(), current) {
		return current.value
	}
	return nil
}

// setHandler sets the handler of a type; nil removes it. A new handler takes the position of the old one. Without an
// old one, the new handler becomes the last listener (HTML standard, section 8.1.8.1).
func (l *listeners) setHandler(kind string, fn *sobek.Object) {
	list := slices.Clone(l.all())
	at := slices.IndexFunc(list, func(current listener) bool { return current.handler && current.kind == kind })
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

// add adds a listener unless it exists (DOM standard, section 2.7).
func (l *listeners) add(kind string, value *sobek.Object, once bool) {
	list := l.all()
	if slices.ContainsFunc(list, isListener(kind, value)) {
		return
	}
	list = append(slices.Clip(list), listener{kind: kind, value: value, once: once})
	l.list.Store(&list)
}

func (l *listeners) remove(kind string, value *sobek.Object) {
	list := slices.DeleteFunc(slices.Clone(l.all()), isListener(kind, value))
	l.list.Store(&list)
}

// isListener returns a function that reports whether a listener has the given kind and value. It returns false for
// handlers.
func isListener(kind string, value *sobek.Object) func(listener) bool {
	return func(current listener) bool { return !current.handler && current.kind == kind && current.value == value }
}
