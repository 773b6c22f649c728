package faulty

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"time"
)

var errDisconnect = errors.New("the proxy disconnected this stream")

type stream struct {
	proxy        *Proxy
	body         io.ReadCloser
	conn         net.Conn        // connection to the subscriber
	disconnected <-chan struct{} // closed when the subscriber has disconnected
	client       string
	topic        string // "" until the topic is known

	split       splitter
	messages    int
	swapMessage []byte // message to be sent after the next one; nil: none
	swapAction  Action // record of the swap
	output      []byte // bytes for Read to return
	chunk       []byte
	endErr      error  // error for Read to return after output
	afterRead   func() // called after all of output has been read; nil: no call
}

// Read returns blocks and comments as soon as they are complete.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.output) == 0 {
		if s.afterRead != nil {
			s.afterRead()
		}
		if s.endErr != nil {
			return 0, s.endErr
		}
		n, err := s.body.Read(s.chunk)
		s.split.add(s.chunk[:n], s.forward)
		if err != nil && s.endErr == nil {
			s.output = append(append(s.output, s.swapMessage...), s.split.end()...)
			s.endErr = err
		}
	}
	n := copy(p, s.output)
	s.output = append(s.output[:0], s.output[n:]...)
	return n, nil
}

func (s *stream) Close() error { return s.body.Close() }

func (s *stream) forward(part []byte) {
	if s.endErr != nil {
		return
	}
	if !bytes.Contains(part, []byte(s.proxy.options.Marker)) {
		s.output = append(s.output, part...)
		return
	}
	s.messages++
	if s.topic == "" {
		s.topic = topicOf(string(part))
	}
	n := number(part)
	if s.swapMessage != nil { // this message completes a swap; no other fault applies to it
		s.output = append(append(s.output, part...), s.swapMessage...)
		s.swapMessage = nil
		s.proxy.record(s.swapAction)
		return
	}
	fault := s.fault(n)
	kind := fault.Kind
	action := Action{
		At: time.Now(), Fault: kind, Topic: s.topic, Number: n, Client: s.client, Message: s.messages,
	}
	switch kind {
	case Lose:
	case Repeat:
		s.output = append(append(s.output, part...), part...)
	case Swap:
		s.swapMessage, s.swapAction = slices.Clone(part), action
		return // recorded when the swap is complete
	case NoNumber, OtherDigit, OtherMarker, OtherTime, Garble:
		s.output = append(s.output, changeMessage(kind, part)...)
	case Reset:
		s.reset()
	case ResetAfter:
		s.output = append(s.output, part...)
		s.endErr = errDisconnect
		s.afterRead = func() {
			s.pause(fault.Wait)
			s.reset()
			action.At = time.Now()
			s.proxy.record(action)
		}
		return
	case Truncate:
		s.output = append(s.output, part[:len(part)/2]...)
		s.endErr = errDisconnect
	case Vanish:
		s.output = append(s.output, part...)
		s.endErr = errDisconnect
		s.afterRead = func() { <-s.disconnected }
	case Pause:
		s.pause(fault.Wait)
		s.output = append(s.output, part...)
	case Close:
		s.endErr = errDisconnect
	case End:
		s.endErr = io.EOF
	default:
		s.output = append(s.output, part...)
		return
	}
	s.proxy.record(action)
}

func (s *stream) reset() {
	if tcp, ok := s.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	s.endErr = errDisconnect
}

func (s *stream) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.disconnected:
	}
}

func (s *stream) fault(n int64) Fault {
	for i, f := range s.proxy.options.Faults {
		selected := max(1, f.Message) == s.messages
		if f.Number != 0 {
			selected = f.Number == n
		}
		selected = selected && (f.Client == "" || f.Client == s.client) && (f.Topic == "" || f.Topic == s.topic)
		if selected && (!f.Once || s.proxy.use(i)) {
			return f
		}
	}
	return Fault{}
}

type connKey struct{}

// A splitter splits an event stream into parts whose concatenation equals the input. All lines of a stream must end
// like the first one: with \n, \r\n or \r.
type splitter struct {
	rest     []byte // an incomplete line or block
	complete int    // number of bytes of rest that belong to complete lines
	last     byte   // last byte of each line; 0: unknown
}

// lastOfLine returns the last byte of each line, or 0 if rest is too short: after \r, the next byte decides.
func (s *splitter) lastOfLine() byte {
	switch i := bytes.IndexAny(s.rest, "\r\n"); {
	case i < 0 || s.rest[i] == '\r' && i == len(s.rest)-1:
		return 0
	case s.rest[i] == '\r' && s.rest[i+1] != '\n':
		return '\r'
	}
	return '\n'
}

// add appends bytes, and calls emit for each complete block, including the blank line at its end. A comment before the
// first field of a block is a separate part, because it may be a heartbeat. So is a blank line that ends no block. A
// part is valid until emit returns.
func (s *splitter) add(p []byte, emit func(part []byte)) {
	s.rest = append(s.rest, p...)
	if s.last == 0 {
		s.last = s.lastOfLine()
	}
	start := 0
	for s.last != 0 {
		end := bytes.IndexByte(s.rest[s.complete:], s.last)
		if end < 0 {
			break
		}
		line := s.rest[s.complete : s.complete+end+1]
		first := s.complete == start
		s.complete += len(line)
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank || first && line[0] == ':' {
			emit(s.rest[start:s.complete])
			start = s.complete
		}
	}
	s.rest = append(s.rest[:0], s.rest[start:]...)
	s.complete -= start
}

// end returns the incomplete last part of the stream.
func (s *splitter) end() []byte { return s.rest }
