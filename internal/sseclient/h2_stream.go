package sseclient

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// h2Stream is a stream on a connection that others share: all that one of thousands adds. Its connection's goroutine reads
// it, as a polled wire; until it has a reader, what comes waits in its pipe.
type h2Stream struct {
	conn *h2Conn

	// Guarded by the connection's mu.
	reader   turner  // nil before it was given one, and when that has hung up
	pipe     *h2Pipe // nil once the reader has what came before it
	err      error   // how it ended, io.EOF by END_STREAM
	id       uint32
	unread   int32 // bytes of the window that the server has used
	consumed int32 // of these, what was read
	answered bool  // the response head has come
	closed   bool  // it was removed from the connection's streams
	direct   bool  // see bringAll
}

var (
	_ transport = (*h2Stream)(nil)
	_ io.Closer = (*h2Stream)(nil)
)

// start gives the stream to its reader, whose first turn takes what came with the response head.
func (st *h2Stream) start(reader turner) {
	c := st.conn
	c.mu.Lock()
	st.reader = reader
	dead := c.failed != nil
	if !dead {
		c.nudge(st)
	}
	c.mu.Unlock()
	if dead { // the connection has no reader any more
		st.turn(make([]byte, 4<<10), new(eventstream.Block))
	}
}

// turn has the reader take what there is. For the connection's goroutine.
func (st *h2Stream) turn(buf []byte, b *eventstream.Block) {
	st.conn.mu.Lock()
	reader := st.reader
	st.conn.mu.Unlock()
	if s, ok := reader.(*Stream); ok && st.direct {
		s.readOn(buf, b)
	} else if reader != nil {
		reader.turn(buf, b)
	}
}

// bring hands on what has come in DATA; unseen bytes of padding came with it.
func (st *h2Stream) bring(part []byte, unseen int, buf []byte, b *eventstream.Block) {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	st.consumed += int32(unseen) // #nosec G115 -- at most a window
	if st.reader != nil && len(part) > 0 {
		c.mu.Unlock()
		c.active, c.payload = st, part
		st.turn(buf, b)
		c.mu.Lock()
		st.consumed += int32(len(part) - len(c.payload)) // #nosec G115 -- at most a frame
		part, c.active, c.payload = c.payload, nil, nil
	}
	if len(part) > 0 && !st.closed {
		if st.pipe == nil {
			st.pipe = newH2Pipe(st)
		}
		st.pipe.data = append(st.pipe.data, part...)
		st.pipe.wake()
	}
	st.credit()
}

// credit tells the server that it may send more, once half of the window was read. The caller holds mu.
func (st *h2Stream) credit() {
	if st.closed || st.consumed < h2Window/2 {
		return
	}
	_ = st.conn.framer.WriteWindowUpdate(st.id, uint32(st.consumed)) // to a buffer: it has no error
	st.unread -= st.consumed
	st.consumed = 0
}

// Read takes what has come, or says errNotReady. For the reader.
func (st *h2Stream) Read(p []byte) (int, error) {
	if st.pipe != nil {
		st.conn.mu.Lock()
		defer st.conn.mu.Unlock()
		if n := st.pipe.take(p); n > 0 {
			return n, nil
		}
		st.pipe = nil
	}
	switch {
	case st.conn.active == st && len(st.conn.payload) > 0:
		n := copy(p, st.conn.payload)
		st.conn.payload = st.conn.payload[n:]
		return n, nil
	case st.err != nil:
		return 0, st.err
	}
	return 0, errNotReady
}

// end notes how the stream ended, once. The caller holds mu.
func (st *h2Stream) end(err error) {
	if st.err == nil {
		st.err = err
	}
	st.leave()
	if st.pipe != nil {
		st.pipe.wake()
	}
}

// leave takes the stream off its connection. The caller holds mu.
func (st *h2Stream) leave() {
	if !st.closed {
		st.closed = true
		st.conn.streams.remove(st)
		st.conn.left()
	}
}

// refuse ends the stream for what the server did wrong on it. The caller holds mu.
func (st *h2Stream) refuse(why *h2Error) {
	if !st.closed {
		_ = st.conn.framer.WriteRSTStream(st.id, why.code)
	}
	st.end(why)
	st.conn.nudge(st)
}

// hangUp closes the stream: it resets it on the server, unless it has ended.
func (st *h2Stream) hangUp() {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	st.reader, st.pipe = nil, nil
	if st.closed {
		return
	}
	_ = c.framer.WriteRSTStream(st.id, http2.ErrCodeCancel)
	st.leave()
	c.flush()
}

// Close gives the stream a turn, in which it sees that it has been stopped, or that it is silent.
func (st *h2Stream) Close() error {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if st.conn.failed == nil {
		st.conn.nudge(st)
	}
	return nil
}

func (st *h2Stream) interrupt() { _ = st.Close() }

func (st *h2Stream) resume(time.Time) {}

func (st *h2Stream) keep() bool { return false } // other streams use the connection anyway

// An h2Pipe is a stream without a reader in a turn: the request that waits for the head of the response reads it as a
// connection.
type h2Pipe struct {
	net.Conn // nil: only the methods below are called
	st       *h2Stream
	changed  chan struct{} // one waits for it

	// Guarded by the connection's mu.
	data     []byte
	head     *h2Head // nil before it has come
	interim  int     // responses (1xx) before it
	window   int64   // what may be sent on the stream
	deadline time.Time
}

// h2Head is the head of a response.
type h2Head struct {
	status int
	header http.Header
	at     time.Time
}

var _ net.Conn = (*h2Pipe)(nil)

func newH2Pipe(st *h2Stream) *h2Pipe {
	return &h2Pipe{st: st, changed: make(chan struct{}, 1)}
}

func (p *h2Pipe) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// take takes what waits. The caller holds the connection's mu.
func (p *h2Pipe) take(to []byte) int {
	n := copy(to, p.data)
	if p.data = p.data[n:]; len(p.data) == 0 {
		p.data = nil
	}
	p.st.consumed += int32(n) // #nosec G115 -- at most a window
	p.st.credit()
	return n
}

// Read waits for what comes, as a connection does.
func (p *h2Pipe) Read(to []byte) (int, error) {
	for {
		n, left, err := p.look(to)
		if n > 0 || err != nil {
			return n, err
		}
		var timeout <-chan time.Time
		if left > 0 {
			timer := time.NewTimer(left)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-p.changed:
		case <-timeout:
		}
	}
}

// look is Read where nothing is waited for; left is the time until the deadline, 0 without one.
func (p *h2Pipe) look(to []byte) (n int, left time.Duration, err error) {
	c := p.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = p.take(to); n > 0 {
		c.flush()
		return n, 0, nil
	}
	if !p.deadline.IsZero() {
		if left = time.Until(p.deadline); left <= 0 {
			return 0, 0, os.ErrDeadlineExceeded
		}
	}
	switch {
	case p.st.err != nil:
		err = p.st.err
	case p.st.closed:
		err = net.ErrClosed
	}
	return 0, left, err
}

// Write is not used: a request is sent in frames.
func (p *h2Pipe) Write([]byte) (int, error) {
	return 0, errors.New("a stream of HTTP/2 takes no bytes that are not framed")
}

// Close closes the stream. From any goroutine.
func (p *h2Pipe) Close() error {
	c := p.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.st.closed {
		_ = c.framer.WriteRSTStream(p.st.id, http2.ErrCodeCancel)
		p.st.leave()
		c.flush()
	}
	p.wake()
	return nil
}

func (p *h2Pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

func (p *h2Pipe) SetReadDeadline(t time.Time) error {
	p.st.conn.mu.Lock()
	defer p.st.conn.mu.Unlock()
	p.deadline = t
	p.wake()
	return nil
}

func (p *h2Pipe) SetWriteDeadline(time.Time) error { return nil }

func (p *h2Pipe) RemoteAddr() net.Addr { return p.st.conn.remote }

func isDeadline(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
