package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A stream is one connection of a device.
type stream struct {
	*service
	*device
	w    http.ResponseWriter
	conn *http.ResponseController
	gone <-chan struct{} // closed when the client has gone
	held []int           // noops that wait for the next one: indices

	inbox chan string   // broadcasts that wait
	cut   chan struct{} // closed when the service gives the client up
}

// errOver ends a stream that a fault has ended, or whose client has gone.
var errOver = errors.New("the stream is over")

// wait waits until a time, unless the client goes or end is closed.
func (s *stream) wait(until time.Time, end <-chan struct{}) (ended bool, err error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return false, nil
		case <-end:
			return true, nil
		case <-s.gone:
			return false, errOver
		case <-s.cut:
			return false, errOver
		case text := <-s.inbox:
			if _, err := io.WriteString(s.w, text); err != nil {
				return false, err
			}
			if err := s.conn.Flush(); err != nil {
				return false, err
			}
		}
	}
}

// run serves the stream until it is over. That the handler returns ends the body in order.
func (s *stream) run(lastEventID string) {
	end := s.begin()
	defer s.finish()
	s.enter(s)
	defer s.leave(s)
	if s.head() != nil {
		return
	}
	for slot := s.where(lastEventID); ; slot++ {
		due := s.Schedule.due(s.id, s.first, slot)
		if over := s.over(slot, due); !over.IsZero() {
			_, _ = s.wait(over, end)
			return
		}
		ended, err := s.wait(due, end)
		switch {
		case err != nil:
			return
		case ended:
			_ = s.flushHeld()
			if s.EndsLate {
				_, _ = s.wait(due, nil)
			}
			return
		case s.serve(slot, due) != nil:
			return
		}
	}
}

// begin notes that a stream of the device is open; the channel is closed when it shall end.
func (s *stream) begin() <-chan struct{} {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	now := time.Now()
	s.streams++
	s.end, s.ended = make(chan struct{}), false
	s.lastOpen, s.closedAt, s.lives = now, time.Time{}, time.Time{}
	if s.streams == 1 {
		s.openedAt = now
	}
	if s.streams == 1 || s.Anew {
		s.first = s.Schedule.first(s.id, now)
	}
	chance := s.Schedule.chance(s.id, uint64(s.streams)+1<<40)
	switch {
	case s.strike.EndIn > 0 && s.strike.meant(s.id) && s.streams == 1:
		s.lives = now.Add(s.strike.EndIn + time.Duration(chance*float64(s.strike.Within)))
	case s.Lives > 0:
		s.lives = now.Add(time.Duration(-math.Log(1-chance) * float64(s.Lives)))
	}
	return s.end
}

// over returns when the service ends the stream, if that is before the noop of a slot; otherwise zero. If noops have no numbers the
// stream ends right after a noop, so that a client that reconnects at once misses none.
func (s *stream) over(slot int, due time.Time) time.Time {
	switch last := s.Schedule.due(s.id, s.first, slot-1); {
	case s.lives.IsZero() || !s.lives.Before(due):
		return time.Time{}
	case s.numbered():
		return s.lives
	case slot == 1:
		return time.Time{}
	default:
		return last.Add(s.Schedule.Every / 10)
	}
}

func (s *stream) finish() {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	s.end = nil
	s.closedAt = time.Now()
}

// head is what a stream begins with.
func (s *stream) head() error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	if s.Framing == "close" {
		h.Set("Transfer-Encoding", "identity")
	}
	body := ""
	if s.BOM {
		body = "\ufeff"
	}
	if s.Retry > 0 {
		body += "retry: " + strconv.Itoa(s.Retry) + s.Lines + s.Lines
	}
	s.w.WriteHeader(http.StatusOK)
	return errors.Join(s.conn.Flush(), s.write(body))
}

// where is the slot to go on with. What came due while the client was away is replayed, or lost.
func (s *stream) where(lastEventID string) int {
	if s.streams == 1 || s.Anew {
		return 1
	}
	slot := s.Schedule.next(s.id, s.first, time.Now())
	s.device.mu.Lock()
	for missed := len(s.noops) + 1; missed < slot; missed++ {
		s.add(noop{slot: missed, due: s.Schedule.due(s.id, s.first, missed), away: true})
	}
	last, _ := strconv.Atoi(lastEventID)
	last += s.Seam
	s.swallow()
	s.device.mu.Unlock()
	if s.Resume && s.numbered() {
		for i := range s.noops {
			if int(s.noops[i].number) > last && s.put(i) != nil {
				break
			}
		}
	}
	return slot
}

// serve makes the noop of a slot, and does with it what the fault wants.
func (s *stream) serve(slot int, due time.Time) error {
	act := s.strike.at(s.device, &s.Schedule, slot)
	s.device.mu.Lock()
	i := s.add(noop{slot: slot, due: due, unserved: act == actSkip, corrupt: act == actCorrupt, named: act == actNamed})
	s.device.mu.Unlock()
	switch act {
	case "":
		late := int64(time.Since(due))
		for past := s.late.Load(); late > past && !s.late.CompareAndSwap(past, late); past = s.late.Load() {
		}
	case actLose, actSkip:
		return nil
	case actQuiet:
		return s.write(": still here" + s.Lines)
	case actHold:
		s.held = append(s.held, i)
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
	case actDuplicate:
		if err := s.put(i); err != nil {
			return err
		}
	}
	if err := s.put(i); err != nil {
		return err
	}
	return s.flushHeld()
}

// flushHeld writes the noops that waited for a later one.
func (s *stream) flushHeld() error {
	for _, i := range s.held {
		s.device.mu.Lock()
		s.noops[i].overtaken = i < len(s.noops)-1
		s.device.mu.Unlock()
		if err := s.put(i); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

// put writes a noop.
func (s *stream) put(i int) error {
	if s.Comments {
		if err := s.write(": between" + s.Lines); err != nil {
			return err
		}
	}
	s.device.mu.Lock()
	frame := s.frame(i)
	s.noops[i].at = time.Now()
	s.noops[i].copies++
	s.device.mu.Unlock()
	return s.write(frame)
}

// reset ends a connection with a TCP RST.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		resetOnClose(conn)
		_ = conn.Close()
	}
}

// resetOnClose makes the end of a connection a TCP RST.
func resetOnClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// write sends text, in one chunk or several.
func (s *stream) write(text string) error {
	size := len(text)
	if s.Framing == "split" {
		size = 3
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	for len(text) > 0 {
		n := min(size, len(text))
		if _, err := io.WriteString(s.w, text[:n]); err != nil {
			return err
		}
		if err := s.conn.Flush(); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// frame is noop i of the device as an event.
func (s *stream) frame(i int) string {
	n := s.noops[i]
	text, data := "", "0"
	if n.named {
		text = "event: noop" + s.Lines
	}
	if id, ok := foreignIDs[s.IDs]; ok {
		text += "id: " + id(s, &n, s.Schedule.chance(s.id, n.number+1<<32)) + s.Lines
	} else if s.numbered() {
		text += "id: " + strconv.FormatUint(n.number, 10) + s.Lines
	}
	if n.corrupt {
		data = "1"
	}
	return text + "data: " + data + s.Lines + s.Lines
}

// foreignIDs are ids that are no sequence of 1, 2, 3 … chance is a number from 0 to 1 that belongs to the noop.
var foreignIDs = map[string]func(s *stream, n *noop, chance float64) string{
	"global":       func(s *stream, _ *noop, _ float64) string { return strconv.FormatUint(s.global.Add(1), 10) }, // one counter for all devices
	"hex":          func(_ *stream, n *noop, _ float64) string { return strconv.FormatUint(n.number, 16) },        // 9 is followed by a
	"random":       func(_ *stream, _ *noop, chance float64) string { return fmt.Sprint(uint64(chance * 1e15)) },
	"small random": func(_ *stream, _ *noop, chance float64) string { return fmt.Sprint(1 + int(chance*5)) },
	"constant":     func(*stream, *noop, float64) string { return "1" },
	"steps of 2":   func(_ *stream, n *noop, _ float64) string { return fmt.Sprint(2 * n.number) },
	"steps of 10":  func(_ *stream, n *noop, _ float64) string { return fmt.Sprint(10 * n.number) },
	"uuid": func(_ *stream, n *noop, chance float64) string {
		return fmt.Sprintf("urn:uuid:%08x-%04x-4000-8000-%012x", uint32(chance*(1<<32)), n.number, n.slot)
	},
}
