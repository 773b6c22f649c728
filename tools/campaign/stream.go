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

// errOver ends a stream that a fault has ended.
var errOver = errors.New("the stream is over")

func (s *stream) run(lastEventID string) {
	end := s.begin()
	defer s.finish()
	if s.write(s.head()) != nil {
		return
	}
	slot := s.where(lastEventID)
	for {
		due := s.Schedule.due(s.id, s.first, slot)
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-s.gone:
			timer.Stop()
			return
		case <-end:
			timer.Stop()
			s.flushHeld()
			s.bye(due)
			return
		}
		if s.serve(slot, due) != nil {
			return
		}
		slot++
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
	if body != "" {
		body = s.framed(body)
	}
	return head + "\r\n" + body
}

// where is the slot to go on with. What came due while the client was away is replayed, or lost.
func (s *stream) where(lastEventID string) int {
	if s.streams == 1 {
		return 1
	}
	now := time.Now()
	slot := s.Schedule.next(s.id, s.first, now)
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

// add enters a noop, and gives it its number. With the lock.
func (d *device) add(n noop) int {
	if !n.unserved {
		d.numbers++
		n.number = d.numbers
	}
	d.noops = append(d.noops, n)
	return len(d.noops) - 1
}

// serve makes the noop of a slot, and does with it what the fault wants.
func (s *stream) serve(slot int, due time.Time) error {
	what := s.strike.at(s.device, &s.Schedule, slot)
	s.device.mu.Lock()
	s.struck = s.struck || what.kind != ""
	i := s.add(noop{slot: slot, due: due, unserved: what.kind == actSkip, corrupt: what.kind == actCorrupt, named: what.kind == actNamed})
	s.device.mu.Unlock()
	if what.kind == "" {
		s.late.note(time.Since(due))
	}
	switch what.kind {
	case actLose, actSkip:
		return nil
	case actQuiet:
		return s.write(s.framed(": still here" + s.Lines))
	case actHold:
		s.held = append(s.held, i)
		return nil
	case actDelay:
		select {
		case <-time.After(what.wait):
		case <-s.gone:
			return errOver
		}
	case actClose:
		s.last()
		return errOver
	case actReset:
		s.reset()
		return errOver
	case actTruncate:
		frame := s.frame(i)
		_, _ = s.conn.Write([]byte(frame[:len(frame)/2]))
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

// bye ends a stream in order.
func (s *stream) bye(tick time.Time) {
	if s.EndsLate {
		select {
		case <-time.After(time.Until(tick)):
		case <-s.gone:
		}
	}
	s.last()
}

// last is the end of a body.
func (s *stream) last() {
	if s.Framing != "close" {
		_ = s.write("0\r\n\r\n")
	}
}

func (s *stream) reset() {
	if tcp, ok := s.conn.(*net.TCPConn); ok {
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
	text := ""
	if n.named {
		text = "event: noop" + s.Lines
	}
	if id := s.eventID(&n); id != "" {
		text += "id: " + id + s.Lines
	}
	data := "0"
	if n.corrupt {
		data = "1"
	}
	return s.framed(text + "data: " + data + s.Lines + s.Lines)
}

func (s *stream) eventID(n *noop) string {
	chance := s.Schedule.chance(s.id, n.number+1<<32)
	switch s.IDs {
	case idsNumbers:
		return strconv.FormatUint(n.number, 10)
	case idsGlobal:
		return strconv.FormatUint(s.global.Add(1), 10)
	case idsHex:
		return strconv.FormatUint(n.number, 16) // 9 is followed by a
	case idsRandom:
		return strconv.FormatUint(uint64(chance*1e15), 10)
	case idsSmall:
		return strconv.Itoa(1 + int(chance*5))
	case idsConstant:
		return "1"
	case idsUUID:
		return fmt.Sprintf("urn:uuid:%08x-%04x-4000-8000-%012x", uint32(chance*(1<<32)), n.number, n.slot)
	case idsTwos:
		return strconv.FormatUint(2*n.number, 10)
	case idsTens:
		return strconv.FormatUint(10*n.number, 10)
	}
	return ""
}

// framed puts text into one chunk or several, or leaves it as it is.
func (s *stream) framed(text string) string {
	chunk := func(t string) string { return strconv.FormatInt(int64(len(t)), 16) + "\r\n" + t + "\r\n" }
	switch s.Framing {
	case "close":
		return text
	case "split":
		var b strings.Builder
		for len(text) > 3 {
			b.WriteString(chunk(text[:3]))
			text = text[3:]
		}
		return b.String() + chunk(text)
	}
	return chunk(text)
}
