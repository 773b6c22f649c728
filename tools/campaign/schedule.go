package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// When the first noop of a stream is due.
const (
	phaseConnect = "connect" // an interval after the connect
	phaseWall    = "wall"    // when the wall clock is a multiple of the interval
	phaseRandom  = "random"  // within the first interval
)

// A schedule says when the noops of a service are due.
type schedule struct {
	Seed   uint64
	Factor float64       // of the planned interval that it keeps, drift included
	Every  time.Duration // that interval
	Jitter float64       // up to this share of the interval each noop leaves later
	Phase  string
}

func drawSchedule(r *rand.Rand) schedule {
	s := schedule{Seed: r.Uint64(), Factor: 1, Jitter: oneOf(r, 0, 0, 0.01, 0.03, 0.1), Phase: oneOf(r, phaseConnect, phaseWall, phaseRandom)}
	if r.IntN(2) == 0 {
		s.Factor += (r.Float64() - 0.5) * 0.016
	}
	return s
}

// chance is a number from 0 to 1 that belongs to a device and one of its noops.
func (s *schedule) chance(id string, n uint64) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", s.Seed, id, n))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// first is when slot 1 of a device that connects at that time is due, before jitter.
func (s *schedule) first(id string, connected time.Time) time.Time {
	switch s.Phase {
	case phaseWall:
		return connected.Add(s.Every - time.Duration(connected.UnixNano())%s.Every)
	case phaseRandom:
		return connected.Add(time.Duration((0.02 + 0.96*s.chance(id, 0)) * float64(s.Every)))
	}
	return connected.Add(s.Every)
}

// due is when a slot, from 1 on, is due of a device whose first was due at first.
func (s *schedule) due(id string, first time.Time, slot int) time.Time {
	late := s.Jitter * s.chance(id, uint64(slot)) * float64(s.Every)
	return first.Add(time.Duration(slot-1)*s.Every + time.Duration(late))
}

// next is the slot that is due next after a time.
func (s *schedule) next(id string, first, now time.Time) int {
	slot := max(int(now.Sub(first)/s.Every), 1)
	for !s.due(id, first, slot).After(now) {
		slot++
	}
	return slot
}
