package sse

import "github.com/grafana/sobek"

// An eventClass is the interface of an event (DOM standard, section 2.2).
type eventClass uint8

const (
	plainEvent eventClass = iota
	messageEvent
	eventClassCount
)

func (m *Module) eventPrototypes() (prototypes [eventClassCount]*sobek.Object) {
	rt := m.vu.Runtime()
	event := rt.NewObject()
	attributes := map[string]bool{"bubbles": false, "cancelable": false, "defaultPrevented": false, "isTrusted": true}
	for name, value := range attributes {
		Must(rt, event.DefineDataProperty(name, rt.ToValue(value), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_TRUE))
	}
	prototypes[plainEvent], prototypes[messageEvent] = event, rt.CreateObject(event)
	nameClass(rt, event, "Event")
	nameClass(rt, prototypes[messageEvent], "MessageEvent")
	return prototypes
}

// nameClass sets the class name that Object.prototype.toString returns for objects with this prototype.
func nameClass(rt *sobek.Runtime, prototype *sobek.Object, name string) {
	Must(rt, prototype.DefineDataPropertySymbol(
		sobek.SymToStringTag, rt.ToValue(name), sobek.FLAG_FALSE, sobek.FLAG_TRUE, sobek.FLAG_FALSE))
}
