package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// A stream is one connection of a device.
type stream struct {
	*service
	*device
	conn net.Conn
	gone chan struct{}
	held []int // noops that wait for the next one: indices
}

// watch sees the client go.
func (s *stream) watch() {
	defer close(s.gone)
	var b [64]byte
	for {
		if _, err := s.conn.Read(b[:]); err != nil {
			return
		}
	}
}

// errOver ends a stream that a fault has ended, or whose client has gone.
var errOver = errors.New("the stream is over")

// wait waits until a time, unless the client goes or end is closed.
func (s *stream) wait(until time.Time, end <-chan struct{}) (ended bool, err error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-end:
		return true, nil
	case <-s.gone:
		return false, errOver
	}
}

func (s *stream) run(lastEventID string) {
	end := s.begin()
	defer s.finish()
	if s.write(s.head()) != nil {
		return
	}
	for slot := s.where(lastEventID); ; slot++ {
		due := s.Schedule.due(s.id, s.first, slot)
		ended, err := s.wait(due, end)
		switch {
		case err != nil:
			return
		case ended:
			_ = s.flushHeld()
			if s.EndsLate {
				_, _ = s.wait(due, nil)
			}
			s.endBody()
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
	s.lastOpen, s.closedAt = now, time.Time{}
	if s.streams == 1 {
		s.openedAt, s.first = now, s.Schedule.first(s.id, now)
	}
	return s.end
}

func (s *stream) finish() {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	s.end = nil
	s.closedAt = time.Now()
}

// head is what a stream begins with, on the wire.
func (s *stream) head() string {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n"
	if s.Framing != "close" {
		head += "Transfer-Encoding: chunked\r\n"
	}
	body := ""
	if s.BOM {
		body = "\ufeff"
	}
	if s.Retry > 0 {
		body += "retry: " + strconv.Itoa(s.Retry) + s.Lines + s.Lines
	}
	return head + "\r\n" + s.framed(body)
}

// where is the slot to go on with. What came due while the client was away is replayed, or lost.
func (s *stream) where(lastEventID string) int {
	if s.streams == 1 {
		return 1
	}
	slot := s.Schedule.next(s.id, s.first, time.Now())
	s.device.mu.Lock()
	for missed := len(s.noops) + 1; missed < slot; missed++ {
		s.add(noop{slot: missed, due: s.Schedule.due(s.id, s.first, missed), away: true})
	}
	last, _ := strconv.ParseUint(lastEventID, 10, 64)
	s.swallow()
	s.device.mu.Unlock()
	if s.Resume && s.numbered() {
		for i := range s.noops {
			if s.noops[i].number > last && s.put(i) != nil {
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
		return s.write(s.framed(": still here" + s.Lines))
	case actHold:
		s.held = append(s.held, i)
		return nil
	case actDelay:
		if _, err := s.wait(time.Now().Add(s.strike.Wait), nil); err != nil {
			return err
		}
	case actClose:
		s.endBody()
		return errOver
	case actReset:
		resetOnClose(s.conn)
		return errOver
	case actTruncate:
		frame := s.frame(i)
		_ = s.write(frame[:len(frame)/2])
		return errOver
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
		if err := s.write(s.framed(": between" + s.Lines)); err != nil {
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

func (s *stream) endBody() {
	if s.Framing != "close" {
		_ = s.write("0\r\n\r\n")
	}
}

// resetOnClose makes the end of a connection a TCP RST.
func resetOnClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

func (s *stream) write(text string) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	_, err := s.conn.Write([]byte(text))
	return err
}

// frame is noop i of the device, on the wire.
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
	return s.framed(text + "data: " + data + s.Lines + s.Lines)
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

// framed puts text into one chunk or several, or leaves it as it is.
func (s *stream) framed(text string) string {
	size := len(text)
	switch s.Framing {
	case "close":
		return text
	case "split":
		size = 3
	}
	var b strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, text[:n])
		text = text[n:]
	}
	return b.String()
}
