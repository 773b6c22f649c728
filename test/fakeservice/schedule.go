package fakeservice

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// When the first noop of a stream is due.
const (
	PhaseStart   = "start"   // at the connect
	PhaseConnect = "connect" // an interval after the connect
	PhaseWall    = "wall"    // when the wall clock is a multiple of the interval
	PhaseRandom  = "random"  // within the first interval
)

// A Schedule determines when the noops of a service are due.
type Schedule struct {
	Seed     uint64
	Factor   float64       // of the planned interval that it keeps, drift included
	Interval time.Duration // that interval
	Jitter   float64       // up to this share of the interval each noop leaves later
	Phase    string
}

// random returns a number from 0 to 1 that depends on a device and one of its noops only.
func (s *Schedule) random(id string, n uint64) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", s.Seed, id, n))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// first returns when slot 1 of a device is due, before jitter.
func (s *Schedule) first(id string, connected time.Time) time.Time {
	switch s.Phase {
	case PhaseStart:
		return connected
	case PhaseWall:
		return connected.Add(s.Interval - time.Duration(connected.UnixNano())%s.Interval)
	case PhaseRandom:
		return connected.Add(time.Duration((0.02 + 0.96*s.random(id, 0)) * float64(s.Interval)))
	}
	return connected.Add(s.Interval)
}

// due returns when a slot, from 1 on, is due for a device whose first was due at first.
func (s *Schedule) due(id string, first time.Time, slot int) time.Time {
	late := s.Jitter * s.random(id, uint64(slot)) * float64(s.Interval)
	return first.Add(time.Duration(slot-1)*s.Interval + time.Duration(late))
}

// next returns the slot that is due next after a time.
func (s *Schedule) next(id string, first, now time.Time) int {
	slot := max(int(now.Sub(first)/s.Interval), 1)
	for !s.due(id, first, slot).After(now) {
		slot++
	}
	return slot
}
