package fakeservice

import (
	"time"

	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// Effects of the wire on a stream.
const (
	WireReset    = "reset"    // a TCP reset, between two noops
	WireMidFrame = "midframe" // the connection ends within a noop
	WireVanish   = "vanish"   // the connection stays open, and nothing passes
	WirePause    = "pause"    // everything is delayed for a while, and then arrives at once
	WireDribble  = "dribble"  // byte for byte
	WireMerge    = "merge"    // several writes become one
)

// wireFaults are the faults of the proxy, by kind. The others concern all bytes.
var wireFaults = map[string]faulty.Kind{
	WireReset: faulty.ResetAfter, WireMidFrame: faulty.Truncate, WireVanish: faulty.Vanish, WirePause: faulty.Pause,
}

// A WireSpec is a proxy in front of the service. The zero value is none.
type WireSpec struct {
	Action  string
	Devices []string
	Noop    int           // after this noop of the first stream that reaches it; for midframe in it
	Delay   time.Duration // so long; for pause for how long
}

// StartWire starts the proxy in front of the service s at an address. What the proxy keeps from clients is recorded in s.
func StartWire(spec WireSpec, address string, s *Service) (*faulty.Proxy, error) {
	o := faulty.Options{
		Marker: "data:", ByteByByte: spec.Action == WireDribble, Merged: spec.Action == WireMerge, OnAction: s.recordWire,
	}
	if kind, ok := wireFaults[spec.Action]; ok {
		for _, id := range spec.Devices {
			o.Faults = append(o.Faults, faulty.Fault{Kind: kind, Client: id, Message: spec.Noop, Wait: spec.Delay, Once: true})
		}
	}
	return faulty.Start("http://"+address, o)
}

// recordWire records the actions of the proxy on a stream.
func (s *Service) recordWire(action faulty.Action) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	d := s.device(action.Client)
	switch action.Fault {
	case faulty.ResetAfter:
		d.disconnectedAt = action.At
	case faulty.Truncate:
		d.cutAfter(action.Message - 1)
		d.disconnectedAt = action.At
	case faulty.Vanish:
		d.cutAfter(action.Message)
	}
}
