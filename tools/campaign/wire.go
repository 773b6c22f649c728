package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// What the wire does to a stream.
const (
	wireReset    = "reset"    // a TCP reset, between two noops
	wireMidFrame = "midframe" // the connection ends within a noop
	wireVanish   = "vanish"   // the connection stays open, and nothing passes
	wirePause    = "pause"    // everything is delayed for a while, and comes at once
	wireDribble  = "dribble"  // byte for byte
	wireMerge    = "merge"    // several writes become one
)

// wireFaults are the faults of the proxy, by what the wire does. The others concern all bytes.
var wireFaults = map[string]faulty.Kind{
	wireReset: faulty.ResetAfter, wireMidFrame: faulty.Truncate, wireVanish: faulty.Vanish, wirePause: faulty.Pause,
}

// A wireSpec is a proxy in front of the service. The zero value is none.
type wireSpec struct {
	Does    string
	Devices []string
	Noop    int           // after this noop of the first stream that has so many; for midframe in it
	After   time.Duration // so long; for pause for how long
}

// startWire starts the proxy in front of the service s at an address. What the proxy keeps from clients is recorded in s.
func startWire(spec wireSpec, address string, s *service) (*faulty.Proxy, error) {
	o := faulty.Options{
		Marker: "data:", ByteByByte: spec.Does == wireDribble, Merged: spec.Does == wireMerge, Did: s.recordWire,
	}
	if kind, ok := wireFaults[spec.Does]; ok {
		for _, id := range spec.Devices {
			o.Faults = append(o.Faults, faulty.Fault{Kind: kind, Client: id, Message: spec.Noop, Wait: spec.After, Once: true})
		}
	}
	return faulty.Start("http://"+address, o)
}

// recordWire records what the proxy did to a stream.
func (s *service) recordWire(did faulty.Deed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.device(did.Client)
	switch did.Fault {
	case faulty.ResetAfter:
		d.goneAt = did.At
	case faulty.Truncate:
		d.cutAfter(did.Message - 1)
		d.goneAt = did.At
	case faulty.Vanish:
		d.cutAfter(did.Message)
	}
}
