package fakeservice

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// Values of Schedule.Phase: when slot 1 of a client is due.
const (
	PhaseImmediate = "start"   // when the client connects
	PhaseInterval  = "connect" // one interval after the client connects
	PhaseWall      = "wall"    // when the wall clock is a multiple of the interval
	PhaseRandom    = "random"  // within the first interval
)

// A Schedule determines when the noops of a service are due.
type Schedule struct {
	Seed     uint64
	Factor   float64       // ratio of Interval to the planned interval, including drift
	Interval time.Duration // time between two noops
	Jitter   float64       // maximum delay of each noop, as a share of the interval
	Phase    string
}

// random returns a number from 0 to 1 that depends only on the seed, the id of a client and n.
func (s *Schedule) random(id string, n uint64) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", s.Seed, id, n))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// firstDue returns the time at which slot 1 of a client is due, without jitter.
func (s *Schedule) firstDue(id string, connectedAt time.Time) time.Time {
	switch s.Phase {
	case PhaseImmediate:
		return connectedAt
	case PhaseWall:
		return connectedAt.Add(s.Interval - time.Duration(connectedAt.UnixNano())%s.Interval)
	case PhaseRandom:
		return connectedAt.Add(time.Duration((0.02 + 0.96*s.random(id, 0)) * float64(s.Interval)))
	}
	return connectedAt.Add(s.Interval)
}

// due returns the time at which a slot of a client is due. first is the time of slot 1 without jitter.
func (s *Schedule) due(id string, first time.Time, slot int) time.Time {
	delay := s.Jitter * s.random(id, uint64(slot)) * float64(s.Interval)
	return first.Add(time.Duration(slot-1)*s.Interval + time.Duration(delay))
}

// nextSlot returns the first slot that is due after now.
func (s *Schedule) nextSlot(id string, first, now time.Time) int {
	slot := max(int(now.Sub(first)/s.Interval), 1)
	for !s.due(id, first, slot).After(now) {
		slot++
	}
	return slot
}
