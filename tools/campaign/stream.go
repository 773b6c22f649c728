package main

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A noopStream is one stream of a device.
type noopStream struct {
	*stream
	*service
	device  *device
	delayed []int // noops that wait for the next one: indices
}

// run serves the stream until it is over. That the handler returns ends the body in order.
func (s *noopStream) run(lastEventID string) {
	s.begin()
	defer s.close()
	s.enter(s)
	defer s.leave(s)
	if s.head() != nil {
		return
	}
	for slot := s.where(lastEventID); ; slot++ {
		due := s.due(slot)
		if over := s.endsBefore(slot, due); !over.IsZero() {
			_, _ = s.wait(over, s.end)
			return
		}
		ended, err := s.wait(due, s.end)
		switch {
		case err != nil:
			return
		case ended:
			_ = s.putDelayed()
			if s.EndsLate {
				_, _ = s.wait(due, nil)
			}
			return
		case s.serve(slot, due) != nil:
			return
		}
	}
}

// due is when the noop of a slot is due.
func (s *noopStream) due(slot int) time.Time {
	return s.Schedule.due(s.device.id, s.device.first, slot)
}

// begin records that a stream of the device is open.
func (s *noopStream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.device
	d.begin(s.stream)
	now, streams := d.last().from, len(d.spans)
	if streams == 1 || s.Anew {
		d.first = s.Schedule.first(d.id, now)
	}
	chance := s.Schedule.chance(d.id, uint64(streams)+1<<40)
	switch {
	case s.strike.EndIn > 0 && s.strike.meant(d.id) && streams == 1:
		s.until = now.Add(s.strike.EndIn + time.Duration(chance*float64(s.strike.Within)))
	case s.Lives > 0:
		s.until = now.Add(time.Duration(-math.Log(1-chance) * float64(s.Lives)))
	}
}

// endsBefore returns when the service ends the stream, if that is before the noop of a slot; otherwise zero. If noops have no numbers
// the stream ends right after a noop, so that a client that reconnects at once misses none.
func (s *noopStream) endsBefore(slot int, due time.Time) time.Time {
	switch {
	case s.until.IsZero() || !s.until.Before(due):
		return time.Time{}
	case s.numbered():
		return s.until
	case slot == 1:
		return time.Time{}
	}
	return s.due(slot - 1).Add(s.Schedule.Every / 10)
}

// close records that the stream is over.
func (s *noopStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.device.present, s.device.last().to = nil, time.Now()
}

// where returns the slot to continue with. Noops that were due while the client was disconnected are replayed, or lost.
func (s *noopStream) where(lastEventID string) int {
	d := s.device
	if len(d.spans) == 1 || s.Anew {
		return 1
	}
	slot := s.Schedule.next(d.id, d.first, time.Now())
	s.mu.Lock()
	for missed := len(d.noops) + 1; missed < slot; missed++ {
		d.add(noop{slot: missed, due: s.due(missed), away: true})
	}
	last, _ := strconv.Atoi(lastEventID)
	last += s.Seam
	d.swallow()
	s.mu.Unlock()
	if s.Resume && s.numbered() {
		for i := range d.noops {
			if int(d.noops[i].number) > last && s.put(i) != nil {
				break
			}
		}
	}
	return slot
}

// serve makes the noop of a slot, and applies the fault to it.
func (s *noopStream) serve(slot int, due time.Time) error {
	s.mu.Lock()
	act := s.strike.at(s.device, &s.Schedule, slot)
	i := s.device.add(noop{slot: slot, due: due, unserved: act == actSkip, corrupt: act == actCorrupt, named: act == actNamed})
	s.mu.Unlock()
	switch act {
	case "":
		s.late.record(due)
	case actLose, actSkip:
		return nil
	case actQuiet:
		return s.write(": still here\n")
	case actHold:
		s.delayed = append(s.delayed, i)
		return nil
	case actDelay:
		if _, err := s.wait(time.Now().Add(s.strike.Wait), nil); err != nil {
			return err
		}
	case actClose:
		return errOver
	case actReset:
		reset(s.w)
		return errOver
	case actTruncate:
		frame := s.frame(i)
		_ = s.write(frame[:len(frame)/2])
		panic(http.ErrAbortHandler) // the body has no end
	case actRepeat:
		if err := s.put(i); err != nil {
			return err
		}
	}
	if err := s.put(i); err != nil {
		return err
	}
	return s.putDelayed()
}

// putDelayed writes the noops that waited for a later one.
func (s *noopStream) putDelayed() error {
	for _, i := range s.delayed {
		s.mu.Lock()
		s.device.noops[i].overtaken = i < len(s.device.noops)-1
		s.mu.Unlock()
		if err := s.put(i); err != nil {
			return err
		}
	}
	s.delayed = nil
	return nil
}

// put writes a noop.
func (s *noopStream) put(i int) error {
	if s.Comments {
		if err := s.write(": between\n"); err != nil {
			return err
		}
	}
	s.mu.Lock()
	frame := s.frame(i)
	s.device.noops[i].at = time.Now()
	s.device.noops[i].copies++
	s.mu.Unlock()
	return s.write(frame)
}

// frame is noop i of the device as an event.
func (s *noopStream) frame(i int) string {
	n := s.device.noops[i]
	text, data := "", "0"
	if n.named {
		text = "event: noop\n"
	}
	if id, ok := foreignIDs[s.IDs]; ok {
		text += "id: " + id(s, &n, s.Schedule.chance(s.device.id, n.number+1<<32)) + "\n"
	} else if s.numbered() {
		text += "id: " + strconv.FormatUint(n.number, 10) + "\n"
	}
	if n.corrupt {
		data = "1"
	}
	return text + "data: " + data + "\n\n"
}

// foreignIDs are ids that are no sequence of 1, 2, 3 … chance is a number from 0 to 1 that belongs to the noop.
var foreignIDs = map[string]func(s *noopStream, n *noop, chance float64) string{
	"global":       func(s *noopStream, _ *noop, _ float64) string { return strconv.FormatUint(s.global.Add(1), 10) }, // one counter for all devices
	"hex":          func(_ *noopStream, n *noop, _ float64) string { return strconv.FormatUint(n.number, 16) },        // 9 is followed by a
	"random":       func(_ *noopStream, _ *noop, chance float64) string { return fmt.Sprint(uint64(chance * 1e15)) },
	"small random": func(_ *noopStream, _ *noop, chance float64) string { return fmt.Sprint(1 + int(chance*5)) },
	"constant":     func(*noopStream, *noop, float64) string { return "1" },
	"steps of 2":   func(_ *noopStream, n *noop, _ float64) string { return fmt.Sprint(2 * n.number) },
	"steps of 10":  func(_ *noopStream, n *noop, _ float64) string { return fmt.Sprint(10 * n.number) },
	"uuid": func(_ *noopStream, n *noop, chance float64) string {
		return fmt.Sprintf("urn:uuid:%08x-%04x-4000-8000-%012x", uint32(chance*(1<<32)), n.number, n.slot)
	},
}
