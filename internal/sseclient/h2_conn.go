package sseclient

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// Settings of this client (RFC 9113, section 6.5.2). Except for h2ConnWindow they are the defaults of the protocol.
const (
	h2Window     = 65535   // INITIAL_WINDOW_SIZE: maximum unread bytes of one stream
	h2ConnWindow = 1 << 20 // window of the connection; enlarged on arrival, so that no stream blocks another
	h2MaxFrame   = 16384   // MAX_FRAME_SIZE
	h2Table      = 4096    // HEADER_TABLE_SIZE, the maximum for both directions
)

const (
	h2FirstStream = 1
	h2LastStream  = 1<<31 - 3   // exclusive limit of the ids of streams
	h2Unlimited   = 1<<31 - 1   // a limit that no connection reaches
	h2IdleFor     = time.Second // how long a connection without streams stays open
)

// An h2Conn is an HTTP/2 connection (RFC 9113) with its streams. One goroutine, on Linux usually the poller, reads the
// connection and passes the bytes to the readers of the streams. Any goroutine may write.
type h2Conn struct {
	net          net.Conn // a tls.Conn, or the plain connection
	remote       net.Addr
	route        *proxy.Proxy
	tls          *tls.ConnectionState // only the fields for tags; nil for a plain connection
	pool         *h2Pool
	singleStream bool          // the connection has only one stream, so a cut may affect the connection
	ready        chan struct{} // closed after the SETTINGS of the server, or when the connection has ended

	polled *polledConn // nil without a poller
	writer io.Writer   // TLS, or the sender; nil without a poller
	sender sender

	// Only the reader uses these fields.
	cursor      h2Cursor
	active      *h2Stream     // the stream whose DATA is being read
	payload     []byte        // the unread part of that DATA
	readAt      time.Duration // time of the last read, since processStart
	onlyReads   bool          // readFrames is running, so turns of the streams only read
	hasSettings bool          // the SETTINGS of the server have arrived, or the connection has ended

	mu            sync.Mutex // guards the fields below
	streams       h2Streams
	nudges        []*h2Stream // streams that requested a turn
	reservations  int         // for streams that have no id yet
	maxStreams    int         // limit of the caller; 0: none
	nextID        uint32      // id of the next stream
	maxConcurrent uint32      // MAX_CONCURRENT_STREAMS of the server
	maxFrame      uint32      // MAX_FRAME_SIZE of the server
	initialWindow int64       // INITIAL_WINDOW_SIZE of the server
	window        int64       // bytes that may be sent on the connection
	receivedBytes int32       // bytes received since the window was last enlarged
	lastID        uint32      // the last stream that the server processes, according to GOAWAY
	goAwayErr     error       // the error for a GOAWAY; nil: none has arrived
	hadStream     bool        // an event stream was opened
	isRetired     bool        // the reader closes the connection, because it has no streams
	isSuspect     bool        // no byte has arrived since a stream timed out; see suspect
	endErr        error       // why the connection has ended; nil before its end
	writeErr      error       // the first error of a write
	idle          *time.Timer // retires the connection; nil before its first idle time

	out         bytes.Buffer // frames to write
	framer      *http2.Framer
	encoder     *hpack.Encoder
	headerBlock bytes.Buffer // output of encoder
}

// newH2Conn returns an HTTP/2 connection over resp.conn, which is new. The caller must call sendPreface and then start.
func newH2Conn(resp *Response, pool *h2Pool, maxStreams int) *h2Conn {
	c := &h2Conn{
		net: resp.conn, remote: resp.Remote, route: resp.proxy, pool: pool, maxStreams: maxStreams, singleStream: maxStreams == 1,
		ready:  make(chan struct{}),
		nextID: h2FirstStream, lastID: h2Unlimited, maxConcurrent: h2Unlimited, maxFrame: h2MaxFrame,
		initialWindow: h2Window, window: h2Window,
	}
	if resp.TLS != nil {
		c.tls = &tls.ConnectionState{Version: resp.TLS.Version, CipherSuite: resp.TLS.CipherSuite}
	}
	c.framer = http2.NewFramer(&c.out, nil)
	c.encoder = hpack.NewEncoder(&c.headerBlock)
	c.cursor.begin()
	return c
}

// sendPreface writes the client preface. It may block, which is harmless because the connection has no reader yet.
func (c *h2Conn) sendPreface() error {
	c.out.WriteString(http2.ClientPreface)
	_ = c.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: http1.MaxHead},
	)
	_ = c.framer.WriteWindowUpdate(0, h2ConnWindow-h2Window) // writing to a buffer does not fail
	_, err := c.net.Write(c.out.Bytes())
	c.out.Reset()
	return err
}

func (c *h2Conn) start() error {
	if c.poll() {
		return c.polled.start()
	}
	go c.read()
	return nil
}

func (c *h2Conn) read() {
	buf := make([]byte, 2*h2MaxFrame)
	var b eventstream.Block
	for !c.isClosed() {
		c.turn(buf, &b)
	}
}

func (c *h2Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endErr != nil
}

// turn writes queued bytes, gives a turn to the streams that requested one, and processes the bytes that have arrived.
// It uses one half of the buffer for frames, and the other for the streams.
func (c *h2Conn) turn(buf []byte, b *eventstream.Block) {
	if err := c.sender.flush(); err != nil {
		c.failWrite(err, buf, b)
		return
	}
	if !c.readBeforeFinish(buf, b) || !c.turnNudges(buf, b) {
		return
	}
	if err := c.readFrames(buf, b); err != errNotReady {
		c.fail(err, buf, b)
	}
}

// readFrames reads frames until an error. The error is errNotReady if all bytes that have arrived are read, or after
// readsPerTurn reads. A requested end or cut of a stream waits for the next turn, because the stream would otherwise
// lose the remaining frames.
func (c *h2Conn) readFrames(buf []byte, b *eventstream.Block) error {
	half := len(buf) / 2
	c.onlyReads = true
	defer func() { c.onlyReads = false }()
	c.readAt = time.Since(processStart)
	for {
		n, err := c.receive(buf[:half])
		if n > 0 {
			if frameErr := c.cursor.read(c, buf[:n], buf[half:], b); frameErr != nil {
				return frameErr
			}
			c.mu.Lock()
			c.isSuspect = false
			c.flush()
			if c.endErr != nil {
				err = c.endErr
			}
			c.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// receive reads from the connection. With a poller it does not block. Without one, a nudge makes it return errNotReady.
func (c *h2Conn) receive(p []byte) (int, error) {
	if c.polled != nil {
		return c.polled.Read(p)
	}
	n, err := c.net.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		_ = c.net.SetReadDeadline(time.Time{})
		c.mu.Unlock()
		err = errNotReady
	}
	return n, err // not wrapped, because callers compare errNotReady and io.EOF
}

// turnNudges gives a turn to the streams that requested one. It returns false if the connection has ended or is paused.
func (c *h2Conn) turnNudges(buf []byte, b *eventstream.Block) bool {
	c.mu.Lock()
	for len(c.nudges) > 0 {
		requested := c.nudges
		c.nudges = nil
		c.mu.Unlock()
		for _, st := range requested {
			st.turn(buf[len(buf)/2:], b)
		}
		c.mu.Lock()
	}
	c.flush()
	err := c.writeErr
	if c.isRetired {
		err = errRetired
	}
	hasEnded, stream := c.endErr != nil, c.onlyStream()
	c.mu.Unlock()
	switch {
	case hasEnded:
		return false
	case err == errRetired:
		c.fail(err, buf, b)
		return false
	case err != nil:
		c.failWrite(err, buf, b)
		return false
	case stream == nil, !stream.isPaused():
		return true
	}
	stream.turn(buf[len(buf)/2:], b) // the pause may be over
	return !stream.isPaused() && !c.isClosed()
}

// failWrite ends the connection after a failed write. It first reads the bytes that the server sent earlier.
func (c *h2Conn) failWrite(err error, buf []byte, b *eventstream.Block) {
	if c.polled == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(finalReadTimeout))
	}
	if readErr := c.readFrames(buf, b); readErr != errNotReady && readErr != io.EOF {
		err = readErr // more specific than the error of the write
	}
	c.fail(err, buf, b)
}

// onlyStream returns the stream of a connection for a single stream. It returns nil if no stream is open, and for any
// other connection. The caller holds mu.
func (c *h2Conn) onlyStream() *h2Stream {
	if c.singleStream {
		for _, st := range c.streams {
			return st
		}
	}
	return nil
}

// nudge requests a turn for a stream, or for the connection if st is nil. The caller holds mu.
func (c *h2Conn) nudge(st *h2Stream) {
	if st != nil {
		if c.nudges = append(c.nudges, st); len(c.nudges) > 1 {
			return
		}
	}
	if c.polled != nil {
		_ = c.polled.Close()
	} else {
		_ = c.net.SetReadDeadline(processStart)
	}
}

// flush writes the frames in out. If that fails, it sets writeErr and requests a turn. The caller holds mu.
func (c *h2Conn) flush() {
	if c.out.Len() == 0 {
		return
	}
	if c.writeErr == nil && c.endErr == nil {
		if err := c.transmit(c.out.Bytes()); err != nil {
			c.writeErr = fmt.Errorf("write to the connection: %w", err)
			c.nudge(nil)
		}
	}
	resetBuffer(&c.out)
}

func resetBuffer(b *bytes.Buffer) {
	if b.Reset(); b.Cap() > 256 {
		*b = bytes.Buffer{}
	}
}

// h2WriteTimeout limits a write without a poller.
const h2WriteTimeout = 10 * time.Second

// transmit writes to the connection. With a poller it does not block.
func (c *h2Conn) transmit(p []byte) error {
	to := c.writer
	if c.polled == nil {
		_ = c.net.SetWriteDeadline(time.Now().Add(h2WriteTimeout))
		to = c.net
	}
	_, err := to.Write(p)
	return err
}

var (
	errRetired         = errors.New("the connection was closed because it had no stream")
	errTruncatedStream = fmt.Errorf("the connection ended before the stream did: %w", io.ErrUnexpectedEOF)
	// errUnprocessed is the error for a request that the server has not processed, so it may be sent again.
	errUnprocessed = errors.New("the server has not processed the request")
	// errResetByPeer makes the end of a stream count as a reset.
	errResetByPeer = errors.New("reset by the server")
)

// fail ends the connection and all its streams. It sends GOAWAY after a violation of HTTP/2, or if the connection is
// retired. The reader calls it.
func (c *h2Conn) fail(err error, buf []byte, b *eventstream.Block) {
	var violation *h2Error
	c.mu.Lock()
	if errors.As(err, &violation) || err == errRetired {
		code := http2.ErrCodeNo
		if violation != nil {
			code = violation.code
		}
		_ = c.framer.WriteGoAway(0, code, nil)
		c.flush()
	}
	switch {
	case err == io.EOF && c.goAwayErr != nil:
		err = c.goAwayErr
	case err == io.EOF && !c.hasSettings:
		err = fmt.Errorf("the server ended the connection without a complete HTTP/2 frame: %w", io.ErrUnexpectedEOF)
	case err == io.EOF:
		err = errTruncatedStream
	case err == io.ErrUnexpectedEOF: // only crypto/tls returns this value
		err = errTruncatedRecord
	}
	c.endErr = err
	if !c.hasSettings {
		close(c.ready)
		c.hasSettings = true
	}
	turns := c.nudges // may include streams that have ended
	c.nudges = nil
	for _, st := range slices.Clone(c.streams) { // end removes streams from c.streams
		st.end(err)
		turns = append(turns, st)
	}
	// A stream without a reader has its turn later, in start.
	turns = slices.DeleteFunc(turns, func(st *h2Stream) bool { return st.reader == nil })
	if c.idle != nil {
		c.idle.Stop()
	}
	c.mu.Unlock()
	c.pool.forget(c)
	for _, st := range turns {
		st.turn(buf[len(buf)/2:], b)
	}
	c.hangUp()
}

// hangUp closes the connection. The reader calls it, or the caller of start if the connection has no reader.
func (c *h2Conn) hangUp() {
	if c.polled != nil {
		c.sender.close(c.polled.hangUp)
	} else {
		hangUp(c.net)
	}
}
