package fakeservice

import (
	"time"

	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// Effects of the wire, a proxy in front of the service, on a stream.
const (
	WireReset    = "reset"    // a TCP reset, between two noops
	WireMidFrame = "midframe" // the connection ends within a noop
	WireVanish   = "vanish"   // the connection stays open without data
	WirePause    = "pause"    // all data is delayed for a while, and then arrives at once
	WireDribble  = "dribble"  // each byte is sent separately
	WireMerge    = "merge"    // several writes become one
)

// wireFaults maps each effect that starts at a message to the proxy's fault. The other effects apply to all bytes.
var wireFaults = map[string]faulty.Kind{
	WireReset: faulty.ResetAfter, WireMidFrame: faulty.Truncate, WireVanish: faulty.Vanish, WirePause: faulty.Pause,
}

// A WireSpec describes a proxy in front of the service. The zero value means no proxy.
type WireSpec struct {
	Action  string
	Clients []string
	Noop    int           // noop after which the effect starts, once per client; midframe, pause: noop that is affected
	Delay   time.Duration // reset: delay after the noop; pause: length of the pause
}

// StartWire starts the proxy in front of the service s at an address. Losses caused by the proxy are recorded in s.
func StartWire(spec WireSpec, address string, s *Service) (*faulty.Proxy, error) {
	o := faulty.Options{
		Marker: "data:", ByteByByte: spec.Action == WireDribble, Merged: spec.Action == WireMerge, OnAction: s.recordWire,
	}
	if kind, ok := wireFaults[spec.Action]; ok {
		for _, id := range spec.Clients {
			o.Faults = append(o.Faults, faulty.Fault{Kind: kind, Client: id, Message: spec.Noop, Wait: spec.Delay, Once: true})
		}
	}
	return faulty.Start("http://"+address, o)
}

func (s *Service) recordWire(action faulty.Action) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.client(action.Client)
	switch action.Fault {
	case faulty.ResetAfter:
		c.disconnectedAt = action.At
	case faulty.Truncate:
		c.cutAfter(action.Message - 1)
		c.disconnectedAt = action.At
	case faulty.Vanish:
		c.cutAfter(action.Message)
	}
}
