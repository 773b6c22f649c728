package faulty

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

var errCut = errors.New("the proxy cut this stream")

// A stream is the body of an event stream to a subscriber.
type stream struct {
	proxy  *Proxy
	from   io.ReadCloser
	conn   net.Conn        // connection to the subscriber
	gone   <-chan struct{} // closed when the subscriber has disconnected
	number int             // position among all streams
	path   string
	client string
	topic  string
	place  int // position among the streams of the topic; 0 until the topic is known

	split    splitter
	messages int
	withheld []byte // swapped message, to be sent after the next one
	swapped  Action
	ready    []byte // bytes for Read to return
	chunk    []byte
	ended    error  // error for Read to return after ready
	then     func() // called when all of ready has been read
}

// Read returns blocks and comments as soon as they are complete.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.then != nil {
			s.then()
		}
		if s.ended != nil {
			return 0, s.ended
		}
		n, err := s.from.Read(s.chunk)
		s.split.add(s.chunk[:n], s.part)
		if err != nil && s.ended == nil {
			s.ready = append(append(s.ready, s.withheld...), s.split.end()...)
			s.ended = err
		}
	}
	n := copy(p, s.ready)
	s.ready = append(s.ready[:0], s.ready[n:]...)
	return n, nil
}

func (s *stream) Close() error { return s.from.Close() }

// part sends a block, or applies a fault to it.
func (s *stream) part(part []byte) {
	if s.ended != nil {
		return
	}
	if !bytes.Contains(part, []byte(s.proxy.options.Marker)) {
		s.ready = append(s.ready, part...)
		return
	}
	s.messages++
	s.proxy.countMessage()
	if s.topic == "" {
		s.topic = topicOf(string(part))
	}
	if s.place == 0 && s.topic != "" {
		s.place = s.proxy.place(s.topic)
	}
	n := number(part)
	fault := s.fault(n)
	kind := fault.Kind
	action := Action{
		At: time.Now(), Fault: kind, Topic: s.topic, Number: n, Stream: s.number, Path: s.path, Client: s.client, Message: s.messages,
	}
	if s.withheld != nil { // this message is the other half of a swap; no other fault applies to it
		s.ready = append(append(s.ready, part...), s.withheld...)
		s.withheld = nil
		s.swapped.Next = action.Number
		s.proxy.record(s.swapped)
		return
	}
	switch kind {
	case Lose:
	case Repeat:
		s.ready = append(append(s.ready, part...), part...)
	case Swap:
		s.withheld, s.swapped = slices.Clone(part), action
		return // recorded when the swap is complete
	case NoNumber, OtherDigit, OtherMarker, OtherTime, Garble:
		s.ready = append(s.ready, changeMessage(kind, part)...)
	case Reset:
		s.reset()
	case ResetAfter:
		s.ready = append(s.ready, part...)
		s.ended = errCut
		s.then = func() {
			s.pause(fault.Wait)
			s.reset()
			action.At = time.Now()
			s.proxy.record(action)
		}
		return
	case Truncate:
		s.ready = append(s.ready, part[:len(part)/2]...)
		s.ended = errCut
	case Vanish:
		s.ready = append(s.ready, part...)
		s.ended = errCut
		s.then = func() { <-s.gone }
	case Pause:
		s.pause(fault.Wait)
		s.ready = append(s.ready, part...)
	case Close:
		s.ended = errCut
	case End:
		s.ended = io.EOF
	default:
		s.ready = append(s.ready, part...)
		return
	}
	s.proxy.record(action)
}

// reset ends the connection of the subscriber with a TCP reset.
func (s *stream) reset() {
	if tcp, ok := s.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	s.ended = errCut
}

// pause waits, unless the subscriber disconnects.
func (s *stream) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.gone:
	}
}

// fault returns the fault for the message with that number, or the zero value if there is none.
func (s *stream) fault(n int64) Fault {
	for i, f := range s.proxy.options.Faults {
		if f.Client != "" && f.Client != s.client {
			continue
		}
		place := s.number
		if f.Topic != "" {
			if f.Topic != s.topic {
				continue
			}
			place = s.place
		}
		concerned := max(1, f.Message) == s.messages
		if f.Number != 0 {
			concerned = f.Number == n
		}
		if concerned && (f.Stream == 0 || f.Stream == place) && (!f.Once || s.proxy.first(i)) {
			return f
		}
	}
	return Fault{}
}

// A connKey is the key of the connection in the context of a request.
type connKey struct{}

func connOf(r *http.Request) net.Conn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return conn
}
