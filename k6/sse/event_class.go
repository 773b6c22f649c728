package sse

import "github.com/grafana/sobek"

// eventClass is the interface of an event, section 2.2 of the DOM standard.
type eventClass uint8

const (
	plainEvent eventClass = iota
	messageEvent
	eventClasses
)

// newEvent makes an event that is dispatched. What is the same for all of a class is on its prototype, once per VU.
func (m *module) newEvent(class eventClass) *sobek.Object {
	rt := m.vu.Runtime()
	if m.events[class] == nil {
		m.events = eventPrototypes(rt)
	}
	return rt.CreateObject(m.events[class])
}

func eventPrototypes(rt *sobek.Runtime) (of [eventClasses]*sobek.Object) {
	of[plainEvent] = rt.NewObject()
	for name, value := range map[string]bool{"bubbles": false, "cancelable": false, "isTrusted": true} {
		must(rt, of[plainEvent].DefineDataProperty(name, rt.ToValue(value), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_TRUE))
	}
	of[messageEvent] = rt.CreateObject(of[plainEvent])
	nameClass(rt, of[plainEvent], "Event")
	nameClass(rt, of[messageEvent], "MessageEvent")
	return of
}

// nameClass has Object.prototype.toString tell what an object is.
func nameClass(rt *sobek.Runtime, prototype *sobek.Object, name string) {
	must(rt, prototype.DefineDataPropertySymbol(sobek.SymToStringTag, rt.ToValue(name), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE))
}
