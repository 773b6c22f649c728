package fakeservice

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

type noopStream struct {
	*Stream
	*Service
	client *NoopClient
	closed bool // the end is recorded; guarded by Mu
}

func (s *noopStream) run(lastEventID string) {
	s.begin()
	defer s.close()
	if s.Head() != nil {
		return
	}
	for slot := s.resumeSlot(lastEventID); ; slot++ {
		due := s.due(slot)
		if end := s.endBefore(slot, due); !end.IsZero() {
			_, _ = s.Wait(end, s.Ended)
			return
		}
		ended, err := s.Wait(due, s.Ended)
		switch {
		case err != nil:
			return
		case ended:
			if !time.Now().Before(due) && s.serve(slot, due) != nil { // a noop that is due precedes the end
				return
			}
			_ = s.writeDelayed()
			_, _ = s.Wait(time.Now().Add(s.EndWait), nil)
			if s.EndsLate {
				_, _ = s.Wait(due, nil)
			}
			return
		case s.serve(slot, due) != nil:
			return
		}
	}
}

func (s *noopStream) due(slot int) time.Time {
	return s.Schedule.due(s.client.ID, s.client.First, slot)
}

func (s *noopStream) begin() {
	size := queueSize
	if s.Slow == SlowKeep {
		size = 1 << 12
	}
	s.inbox, s.cut = make(chan string, size), make(chan struct{})
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.inboxes[s] = true
	c := s.client
	c.Begin(s.Stream)
	now, streams := c.Last().From, len(c.Spans)
	if streams == 1 || s.NewSchedule {
		c.First = s.Schedule.firstDue(c.ID, now)
	}
	chance := s.Schedule.random(c.ID, uint64(streams)+1<<40)
	switch {
	case s.strike.EndIn > 0 && s.strike.Matches(c.ID) && streams == 1:
		s.EndAt = now.Add(s.strike.EndIn + time.Duration(chance*float64(s.strike.Within)))
	case s.MeanLifetime > 0:
		s.EndAt = now.Add(time.Duration(-math.Log(1-chance) * float64(s.MeanLifetime)))
	}
}

// endBefore returns the time at which the service ends the stream, or zero if the noop of a slot is due earlier.
// Without numbers, a stream ends right after a noop, and not before the first one, so that a client that reconnects at
// once misses none.
func (s *noopStream) endBefore(slot int, due time.Time) time.Time {
	switch {
	case s.EndAt.IsZero() || !s.EndAt.Before(due):
		return time.Time{}
	case s.Numbered():
		return s.EndAt
	case slot == 1:
		return time.Time{}
	}
	return s.due(slot - 1).Add(s.Schedule.Interval / 10)
}

func (s *noopStream) close() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	delete(s.inboxes, s)
	s.client.Last().To = time.Now()
	if s.client.Open == s.Stream {
		s.client.Open = nil
	}
}

// resumeSlot returns the slot to continue with. It records the noops of the outage, and writes the noops that the
// service must replay.
func (s *noopStream) resumeSlot(lastEventID string) int {
	c := s.client
	if len(c.Spans) == 1 || s.NewSchedule {
		return 1
	}
	slot := s.Schedule.nextSlot(c.ID, c.First, time.Now())
	s.Mu.Lock()
	for missed := len(c.Noops) + 1; missed < slot; missed++ {
		c.add(Noop{Slot: missed, Due: s.due(missed), Disconnected: true})
	}
	last, _ := strconv.Atoi(lastEventID)
	last += s.Seam
	c.markLost()
	s.Mu.Unlock()
	if s.Resume && s.Numbered() {
		for i := range c.Noops {
			if int(c.Noops[i].Number) > last && s.writeNoop(i) != nil {
				break
			}
		}
	}
	return slot
}

func (s *noopStream) serve(slot int, due time.Time) error {
	s.Mu.Lock()
	action := s.strike.actionFor(s.client, &s.Schedule, slot)
	i := s.client.add(Noop{Slot: slot, Due: due, Unserved: action == ActSkip, Corrupt: action == ActCorrupt, OtherEvent: action == ActNamed})
	s.Mu.Unlock()
	switch action {
	case "":
		s.Lateness.Record(due)
	case ActQuiet:
		return s.Write(": still here\n")
	}
	err := s.Apply(action, s.strike.Wait, func() string { return s.frame(i) }, func() error {
		if action == ActSwap {
			s.Mu.Lock()
			s.client.Noops[i].Overtaken = i < len(s.client.Noops)-1
			s.Mu.Unlock()
		}
		return s.writeNoop(i)
	})
	switch action {
	case ActReset:
		s.close() // at once, because a client that notices the reset requests the end of the stream
		Reset(s.W)
	case ActTruncate:
		panic(http.ErrAbortHandler) // the body must not be completed
	}
	return err
}

func (s *noopStream) writeNoop(i int) error {
	if s.Comments {
		if err := s.Write(": a comment\n"); err != nil {
			return err
		}
	}
	s.Mu.Lock()
	frame, slot := s.frame(i), s.client.Noops[i].Slot
	s.client.Noops[i].At = time.Now()
	s.client.Noops[i].Copies++
	s.sent.Add(1)
	s.Mu.Unlock()
	if s.Text != nil {
		frame = s.Text(s.client.ID, slot)
	}
	return s.Write(frame)
}

func (s *noopStream) frame(i int) string {
	n := s.client.Noops[i]
	text, data := "", "0"
	if n.OtherEvent {
		text = "event: noop\n"
	}
	if id, ok := ForeignIDs[s.IDs]; ok {
		text += "id: " + id(s, &n, s.Schedule.random(s.client.ID, n.Number+1<<32)) + "\n"
	} else if s.Numbered() {
		text += "id: " + strconv.FormatUint(n.Number, 10) + "\n"
	}
	if n.Corrupt {
		data = "1"
	}
	return text + "data: " + data + "\n\n"
}

// ForeignIDs contains functions that return ids other than the numbers of the noops. chance is a number from 0 to 1
// that depends only on the noop.
var ForeignIDs = map[string]func(s *noopStream, n *Noop, chance float64) string{
	// All clients share one counter.
	"global": func(s *noopStream, _ *Noop, _ float64) string { return strconv.FormatUint(s.global.Add(1), 10) },
	// Hexadecimal: the id "9" is followed by "a".
	"hex":          func(_ *noopStream, n *Noop, _ float64) string { return strconv.FormatUint(n.Number, 16) },
	"random":       func(_ *noopStream, _ *Noop, chance float64) string { return fmt.Sprint(uint64(chance * 1e15)) },
	"small random": func(_ *noopStream, _ *Noop, chance float64) string { return fmt.Sprint(1 + int(chance*5)) },
	"constant":     func(*noopStream, *Noop, float64) string { return "1" },
	"steps of 2":   func(_ *noopStream, n *Noop, _ float64) string { return fmt.Sprint(2 * n.Number) },
	"steps of 10":  func(_ *noopStream, n *Noop, _ float64) string { return fmt.Sprint(10 * n.Number) },
	"uuid": func(_ *noopStream, n *Noop, chance float64) string {
		return fmt.Sprintf("urn:uuid:%08x-%04x-4000-8000-%012x", uint32(chance*(1<<32)), n.Number, n.Slot)
	},
}

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
