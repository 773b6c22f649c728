package sseclient

import (
	"net"
	"os"
	"time"

	"golang.org/x/net/http2"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// An h2Stream is one stream of an HTTP/2 connection. The goroutine of the connection calls the reader of the stream.
// The pipe buffers the bytes that arrive before the stream has a reader, or that the reader does not read at once.
type h2Stream struct {
	conn *h2Conn

	// Guarded by the connection's mu, except that a turn accesses err, pipe and ignoresCuts without it.
	reader        turner  // nil before start and after hangUp
	pipe          *h2Pipe // nil after the reader has emptied it
	err           error   // why the stream has ended; io.EOF: by END_STREAM
	id            uint32
	receivedBytes int32 // bytes received and not yet returned as credit
	consumedBytes int32 // the part of receivedBytes that was read
	hasHead       bool  // the response header has arrived
	isClosed      bool  // removed from the streams of the connection
	ignoresCuts   bool  // turns only read; see readArrived
}

// start sets the reader. The first turn of the reader reads the bytes that arrived after the response header.
func (st *h2Stream) start(reader turner) {
	c := st.conn
	c.mu.Lock()
	st.reader = reader
	ended := c.endErr != nil
	if !ended {
		c.nudge(st)
	}
	c.mu.Unlock()
	if ended { // the reader of the connection has stopped
		st.turn(make([]byte, 4<<10), new(eventstream.Block))
	}
}

// turn gives the reader a turn. The goroutine of the connection calls it, or start after the end of the connection.
func (st *h2Stream) turn(buf []byte, b *eventstream.Block) {
	st.conn.mu.Lock()
	reader := st.reader
	st.conn.mu.Unlock()
	if s, ok := reader.(*Stream); ok && (st.ignoresCuts || st.conn.onlyReads) {
		s.readStream(buf, b)
	} else if reader != nil {
		reader.turn(buf, b)
	}
}

// deliver passes content of DATA to the reader. Bytes that the reader does not read go to the pipe. discarded is the
// number of bytes of padding next to the content.
func (st *h2Stream) deliver(part []byte, discarded int, buf []byte, b *eventstream.Block) {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	st.consumedBytes += int32(discarded) // #nosec G115 -- at most a window
	if st.reader != nil && len(part) > 0 {
		c.mu.Unlock()
		c.active, c.payload = st, part
		st.turn(buf, b)
		c.mu.Lock()
		st.consumedBytes += int32(len(part) - len(c.payload)) // #nosec G115 -- at most a frame
		part, c.active, c.payload = c.payload, nil, nil
	}
	if len(part) > 0 && !st.isClosed {
		if st.pipe == nil {
			st.pipe = newH2Pipe(st)
		}
		st.pipe.data = append(st.pipe.data, part...)
		st.pipe.wake()
	}
	st.credit()
}

// credit enlarges the window when half of it has been read. The caller holds mu.
func (st *h2Stream) credit() {
	if st.isClosed || st.consumedBytes < h2Window/2 {
		return
	}
	_ = st.conn.framer.WriteWindowUpdate(st.id, uint32(st.consumedBytes)) // writing to a buffer does not fail
	st.receivedBytes -= st.consumedBytes
	st.consumedBytes = 0
}

// Read reads the bytes that have arrived. It returns errNotReady if none have arrived. The reader calls it.
func (st *h2Stream) Read(p []byte) (int, error) {
	if st.pipe != nil {
		st.conn.mu.Lock()
		defer st.conn.mu.Unlock()
		if n := st.pipe.readBuffered(p); n > 0 {
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

// end ends the stream. Only the first error counts. The caller holds mu.
func (st *h2Stream) end(err error) {
	if st.err == nil {
		st.err = err
	}
	st.detach()
	if st.pipe != nil {
		st.pipe.wake()
	}
}

// detach removes the stream from its connection. The caller holds mu.
func (st *h2Stream) detach() {
	if !st.isClosed {
		st.isClosed = true
		st.conn.streams.remove(st)
		st.conn.retireIfUnused()
	}
}

// refuse ends a stream on which the server violated HTTP/2. The caller holds mu.
func (st *h2Stream) refuse(cause *h2Error) {
	if !st.isClosed {
		_ = st.conn.framer.WriteRSTStream(st.id, cause.code)
	}
	st.end(cause)
	st.conn.nudge(st)
}

// hangUp closes the stream. It sends RST_STREAM unless the stream has ended.
func (st *h2Stream) hangUp() {
	c := st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	st.reader, st.pipe = nil, nil
	if st.isClosed {
		return
	}
	_ = c.framer.WriteRSTStream(st.id, http2.ErrCodeCancel)
	st.detach()
	c.flush()
}

// Close requests a turn, in which the reader checks whether the stream was stopped or the server is silent.
func (st *h2Stream) Close() error {
	st.conn.mu.Lock()
	defer st.conn.mu.Unlock()
	if st.conn.endErr == nil {
		st.conn.nudge(st)
	}
	return nil
}

func (st *h2Stream) interrupt() { _ = st.Close() }

// resume does nothing, because the reader of the connection ends the interruption.
func (st *h2Stream) resume(time.Time) {}

func (st *h2Stream) keep() bool { return false } // the pool keeps the connection

// An h2Pipe is the buffer of a stream, and the net.Conn of the goroutine that awaits or reads the response.
type h2Pipe struct {
	net.Conn // nil, because only the methods below are called
	st       *h2Stream
	change   chan struct{} // has a value after a change of the stream

	// Guarded by the connection's mu.
	data     []byte
	head     *Response // with only the status and the header; nil before their arrival
	interim  int       // number of interim responses (1xx)
	window   int64     // bytes that may be sent on the stream
	deadline time.Time // of Read; zero: no deadline
}

func newH2Pipe(st *h2Stream) *h2Pipe {
	return &h2Pipe{st: st, change: make(chan struct{}, 1)}
}

func (p *h2Pipe) wake() {
	select {
	case p.change <- struct{}{}:
	default:
	}
}

// readBuffered reads buffered bytes. The caller holds the mu of the connection.
func (p *h2Pipe) readBuffered(to []byte) int {
	n := copy(to, p.data)
	if p.data = p.data[n:]; len(p.data) == 0 {
		p.data = nil
	}
	p.st.consumedBytes += int32(n) // #nosec G115 -- at most a window
	p.st.credit()
	return n
}

func (p *h2Pipe) Read(to []byte) (int, error) {
	for {
		n, remaining, err := p.readNow(to)
		if n > 0 || err != nil {
			return n, err
		}
		var timeout <-chan time.Time
		if remaining > 0 {
			timer := time.NewTimer(remaining)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-p.change:
		case <-timeout:
		}
	}
}

// readNow is Read without waiting. remaining is the time until the deadline, or 0 if there is no deadline.
func (p *h2Pipe) readNow(to []byte) (n int, remaining time.Duration, err error) {
	c := p.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = p.readBuffered(to); n > 0 {
		c.flush()
		return n, 0, nil
	}
	if !p.deadline.IsZero() {
		if remaining = time.Until(p.deadline); remaining <= 0 {
			return 0, 0, os.ErrDeadlineExceeded
		}
	}
	switch {
	case p.st.err != nil:
		err = p.st.err
	case p.st.isClosed:
		err = net.ErrClosed
	}
	return 0, remaining, err
}

// Close closes the stream. Any goroutine may call it.
func (p *h2Pipe) Close() error {
	c := p.st.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.st.isClosed {
		_ = c.framer.WriteRSTStream(p.st.id, http2.ErrCodeCancel)
		p.st.detach()
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

func (p *h2Pipe) RemoteAddr() net.Addr { return p.st.conn.remote }
