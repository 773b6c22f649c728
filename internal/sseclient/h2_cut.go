package sseclient

import (
	"errors"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// What is done to a connection is done to all its streams: one that is to be cut has a connection of its own. A stream that
// shares one can be closed, and nothing else.
var errSharedConnection = errors.New("the stream shares its connection with others (HTTP/2): give it one of its own, with the option streamsPerConnection: 1")

// polledBy is the polled connection that carries a stream and no other, nil where there is none.
func polledBy(conn any) *polled {
	switch w := conn.(type) {
	case *polled:
		return w
	case *h2Stream:
		if w.conn.singleStream {
			return w.conn.polled
		}
	}
	return nil
}

// cutShared asks for a cut of a stream over HTTP/2. The caller holds mu.
func (s *Stream) cutShared(st *h2Stream, c *cutting) bool {
	if c.kind != CutFIN && polledBy(st) == nil {
		tcp := tcpOf(st.conn.net)
		if !st.conn.singleStream || c.kind == CutPause || tcp == nil || cutNow(tcp, c.kind) != nil {
			return false
		}
		c.done = true
	}
	s.request(c)
	_ = st.Close() // gives it a turn
	return true
}

// turnShared closes a stream that is to be cut and has no connection of its own that the poller reads.
func (s *Stream) turnShared(c *cutting, buf []byte, b *eventstream.Block) (done bool) {
	if _, ok := s.body.transport.(*h2Stream); !ok || polledBy(s.body.transport) != nil || c.kind != CutFIN {
		return false
	}
	if s.readOn(buf, b) { // else it ended by itself
		c.done = true
		s.finishStream(errCut)
	}
	return true
}

// bring reads what has come on the stream's own connection. It returns false where the stream has ended.
func (s *Stream) bring(buf []byte, b *eventstream.Block) bool {
	if !s.readOn(buf, b) {
		return false
	}
	st, ok := s.body.transport.(*h2Stream)
	if !ok {
		return true
	}
	st.direct = true
	if err := st.conn.bring(buf, b); err != errNotReady {
		st.conn.fail(err, buf, b)
	}
	st.direct = false
	return s.body.transport != nil
}

// abandon closes the stream's connection as hangUp does, and nothing is said on it any more.
func (s *Stream) abandon(hangUp func()) {
	st, ok := s.body.transport.(*h2Stream)
	if !ok {
		hangUp()
		return
	}
	c := st.conn
	c.mu.Lock()
	c.failed, st.closed = errCut, true
	c.streams = nil
	c.mu.Unlock()
	c.sender.close(hangUp)
}

// ended says of a stream over HTTP/2 that nothing follows what has come.
func ended(w transport) bool {
	st, ok := w.(*h2Stream)
	return ok && st.err != nil
}

// resting reports whether the stream's reader does not want its connection read just now. Without a poller a cut has closed the
// connection, which only a read notices.
func (st *h2Stream) resting() bool {
	if st.conn.polled == nil {
		return false
	}
	st.conn.mu.Lock()
	s, ok := st.reader.(*Stream)
	st.conn.mu.Unlock()
	if !ok {
		return false
	}
	c := s.due()
	return c != nil && c.done
}
