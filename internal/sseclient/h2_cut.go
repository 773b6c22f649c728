package sseclient

import (
	"errors"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// errSharedConnection is the error of Vanish and Slow for a stream that shares its connection, because these methods
// would affect the other streams.
var errSharedConnection = errors.New("the stream shares its HTTP/2 connection with others; set the option streamsPerConnection to 1")

// polledConnOf returns the polled connection of a stream that does not share it, or nil for other streams.
func polledConnOf(conn any) *polledConn {
	switch c := conn.(type) {
	case *polledConn:
		return c
	case *h2Stream:
		if c.conn.singleStream {
			return c.conn.polled
		}
	}
	return nil
}

// cutShared is Cut for an HTTP/2 stream. It returns false if the cut would affect other streams. Without a poller, only
// a CutFIN waits for the next turn; other cuts are made at once, and a CutPause is not possible. The caller holds mu.
func (s *Stream) cutShared(st *h2Stream, c *cutRequest) bool {
	if c.kind != CutFIN && polledConnOf(st) == nil {
		tcp := tcpOf(st.conn.net)
		if !st.conn.singleStream || c.kind == CutPause || tcp == nil || cutNow(tcp, c.kind) != nil {
			return false
		}
		c.done = true
	}
	s.storeCut(c)
	_ = st.Close() // requests a turn
	return true
}

// turnShared makes a requested CutFIN of a stream that shares its connection, or whose connection is not polled.
func (s *Stream) turnShared(c *cutRequest, buf []byte, b *eventstream.Block) (done bool) {
	if _, ok := s.body.transport.(*h2Stream); !ok || polledConnOf(s.body.transport) != nil || c.kind != CutFIN {
		return false
	}
	if s.readStream(buf, b) { // the stream has not ended
		c.done = true
		s.finishStream(errCut)
	}
	return true
}

// readArrived reports the events that have arrived on an unshared connection. It returns false if the stream has ended.
func (s *Stream) readArrived(buf []byte, b *eventstream.Block) bool {
	if !s.readStream(buf, b) {
		return false
	}
	st, ok := s.body.transport.(*h2Stream)
	if !ok {
		return true
	}
	st.ignoresCuts = true
	if err := st.conn.readFrames(buf, b); err != errNotReady {
		st.conn.fail(err, buf, b)
	}
	st.ignoresCuts = false
	return s.body.transport != nil
}

// readBeforeFinish reads the frames that have arrived on a polled connection, if streams on it are about to finish. It
// returns false if the connection has ended, or if the next turn must read further frames first.
func (c *h2Conn) readBeforeFinish(buf []byte, b *eventstream.Block) bool {
	if c.polled == nil {
		return true
	}
	var finishing []*Stream
	c.mu.Lock()
	for _, st := range c.nudges {
		if s, ok := st.reader.(*Stream); ok && s.finishTurns.Load() > 0 {
			finishing = append(finishing, s)
		}
	}
	c.mu.Unlock()
	if len(finishing) == 0 {
		return true
	}
	if err := c.readFrames(buf, b); err != errNotReady {
		c.fail(err, buf, b)
		return false
	}
	unread := c.polled.hasUnread()
	for _, s := range finishing {
		unread = s.finishTurns.Add(-1) > 0 && unread
	}
	return !unread
}

// abandon calls hangUp, which closes the connection of the stream or leaves it half-open. It sends no frame.
func (s *Stream) abandon(hangUp func()) {
	st, ok := s.body.transport.(*h2Stream)
	if !ok {
		hangUp()
		return
	}
	c := st.conn
	c.mu.Lock()
	c.endErr, st.isClosed = errCut, true
	c.streams = nil
	c.mu.Unlock()
	c.sender.close(hangUp)
}

func hasEnded(t transport) bool {
	st, ok := t.(*h2Stream)
	return ok && st.err != nil
}

// isPaused reports whether a cut suspends reading from the connection. Without a poller it returns false: a cut then
// closes the connection, and only a read returns the resulting error.
func (st *h2Stream) isPaused() bool {
	if st.conn.polled == nil {
		return false
	}
	st.conn.mu.Lock()
	s, ok := st.reader.(*Stream)
	st.conn.mu.Unlock()
	if !ok {
		return false
	}
	c := s.pendingCut()
	return c != nil && c.done
}
