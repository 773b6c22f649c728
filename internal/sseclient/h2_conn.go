package sseclient

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// What this client tells a server of itself in SETTINGS (RFC 9113, section 6.5.2); the rest is as the protocol has it.
const (
	h2Window     = 65535   // INITIAL_WINDOW_SIZE: what may wait for the reader of one stream
	h2ConnWindow = 1 << 20 // of the connection, given back as it comes: no stream holds up another
	h2MaxFrame   = 16384   // MAX_FRAME_SIZE
	h2Table      = 4096    // HEADER_TABLE_SIZE, of ours and at most of theirs
)

const (
	h2FirstStream = 1
	h2LastStream  = 1<<31 - 3 // a connection whose numbers are used up is let go
	h2Unlimited   = 1<<31 - 1
	h2IdleFor     = time.Second // without a stream, until it is closed
)

// h2Conn is a connection over which HTTP/2 is spoken (RFC 9113), with the streams that share it. One goroutine reads it,
// on Linux the poller: what comes for a stream is handed to that stream's reader in the same turn. Any goroutine writes.
type h2Conn struct {
	net          net.Conn // that TLS or the server is spoken to on
	remote       net.Addr
	through      *proxy.Proxy
	tls          *tls.ConnectionState // no more than what tags tell of it; nil for a plain one
	pool         *h2Pool
	singleStream bool          // for one stream: what is done to the connection is done to that
	ready        chan struct{} // closed when the server's SETTINGS have come, or the connection has failed

	polled *polled   // nil where a goroutine reads
	to     io.Writer // TLS, or the sender; nil where a goroutine reads
	sender sender
	cursor h2Cursor // of the reader, as what follows

	active  *h2Stream     // whose turn it is, since DATA has come for it
	payload []byte        // of that, what it has not read yet
	readAt  time.Duration // since processStart: when the reader last looked what has come

	mu          sync.Mutex // guards what follows
	streams     h2Streams
	nudged      []*h2Stream // want a turn
	places      int         // reserved for streams that have no number yet
	per         int         // streams at most, by the script; 0: no bound of its own
	next        uint32      // the next stream's number
	most        uint32      // MAX_CONCURRENT_STREAMS of the server
	frame       uint32      // MAX_FRAME_SIZE of the server
	initial     int64       // INITIAL_WINDOW_SIZE of the server
	window      int64       // what may be sent on the connection
	unread      int32       // received, and not given back to the connection's window
	hasSettings bool        // the server's SETTINGS have come
	last        uint32      // of GOAWAY: no later stream was or will be looked at
	goAwayErr   error       // what GOAWAY said; nil without one
	opened      bool        // an event stream was, on this connection
	retired     bool        // closed for want of streams
	doubted     bool        // nothing has come since a stream on it was given up for that: see doubt
	failed      error       // why it has ended
	broken      error       // why nothing can be written
	idle        *time.Timer

	out    bytes.Buffer // frames to be written
	framer *http2.Framer
	fields *hpack.Encoder
	block  bytes.Buffer // a header list that is being encoded
}

// newH2Conn makes a connection of one over which nothing was said. Its reader is begun by start.
func newH2Conn(a *Response, pool *h2Pool, per int) *h2Conn {
	c := &h2Conn{
		net: a.conn, remote: a.Remote, through: a.proxy, pool: pool, per: per, singleStream: per == 1,
		ready: make(chan struct{}),
		next:  h2FirstStream, most: h2Unlimited, frame: h2MaxFrame, initial: h2Window, window: h2Window, last: h2Unlimited,
	}
	if a.TLS != nil {
		c.tls = &tls.ConnectionState{Version: a.TLS.Version, CipherSuite: a.TLS.CipherSuite}
	}
	c.framer = http2.NewFramer(&c.out, nil)
	c.fields = hpack.NewEncoder(&c.block)
	c.cursor.begin()
	return c
}

// greet writes the preface of a client. It may wait: the connection has no reader yet.
func (c *h2Conn) greet() error {
	c.out.WriteString(http2.ClientPreface)
	_ = c.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: http1.MaxHead},
	)
	_ = c.framer.WriteWindowUpdate(0, h2ConnWindow-h2Window) // to a buffer: these have no error
	_, err := c.net.Write(c.out.Bytes())
	c.out.Reset()
	return err //nolint:wrapcheck // its caller says of what
}

// start gives the connection its reader.
func (c *h2Conn) start() error {
	if c.poll() {
		return c.polled.start()
	}
	go c.read()
	return nil
}

// read is the reader where there is no poller.
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
	return c.failed != nil
}

var _ turner = (*h2Conn)(nil)

// turn takes what has come. One half of the buffer is for frames, the other for the streams.
func (c *h2Conn) turn(buf []byte, b *eventstream.Block) {
	if err := c.sender.flush(); err != nil {
		c.failUnwritten(err, buf, b)
		return
	}
	if !c.turnNudged(buf, b) {
		return
	}
	if err := c.bring(buf, b); err != errNotReady {
		c.fail(err, buf, b)
	}
}

// bring reads frames until nothing is left; it returns errNotReady then.
func (c *h2Conn) bring(buf []byte, b *eventstream.Block) error {
	half := len(buf) / 2
	c.readAt = time.Since(processStart)
	for {
		n, err := c.receive(buf[:half])
		if n > 0 {
			if broken := c.cursor.take(c, buf[:n], buf[half:], b); broken != nil {
				return broken
			}
			c.mu.Lock()
			c.doubted = false
			c.flush()
			if c.failed != nil {
				err = c.failed
			}
			c.mu.Unlock()
		}
		if err != nil {
			return err
		}
	}
}

// receive is a read that does not wait where there is a poller. Elsewhere a nudge ends it.
func (c *h2Conn) receive(p []byte) (int, error) {
	if c.polled != nil {
		return c.polled.Read(p)
	}
	n, err := c.net.Read(p)
	if err != nil && isDeadline(err) {
		c.mu.Lock()
		_ = c.net.SetReadDeadline(time.Time{})
		c.mu.Unlock()
		err = errNotReady
	}
	return n, err //nolint:wrapcheck // as it is
}

// turnNudged gives those streams a turn that asked for one. It returns false where the connection has ended, or rests.
func (c *h2Conn) turnNudged(buf []byte, b *eventstream.Block) bool {
	c.mu.Lock()
	for len(c.nudged) > 0 {
		nudged := c.nudged
		c.nudged = nil
		c.mu.Unlock()
		for _, st := range nudged {
			st.turn(buf[len(buf)/2:], b)
		}
		c.mu.Lock()
	}
	c.flush()
	err := c.broken
	if c.retired {
		err = errRetired
	}
	failed, only := c.failed != nil, c.only()
	c.mu.Unlock()
	switch {
	case failed:
	case err == errRetired:
		c.fail(err, buf, b)
		return false
	case err != nil:
		c.failUnwritten(err, buf, b)
		return false
	}
	if failed || only == nil || !only.resting() {
		return !failed
	}
	only.turn(buf[len(buf)/2:], b) // it may be over: the server has ended the connection
	return !only.resting() && !c.isClosed()
}

// failUnwritten ends a connection to which nothing can be written, when what the server said before is read.
func (c *h2Conn) failUnwritten(err error, buf []byte, b *eventstream.Block) {
	if c.polled == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(lastChance))
	}
	if read := c.bring(buf, b); read != errNotReady && read != io.EOF {
		err = read // tells more
	}
	c.fail(err, buf, b)
}

// only is the stream of a connection that has one, nil for any other connection. The caller holds mu.
func (c *h2Conn) only() *h2Stream {
	if c.singleStream {
		for _, st := range c.streams {
			return st
		}
	}
	return nil
}

// nudge gives a stream a turn soon, or the connection where st is nil. The caller holds mu.
func (c *h2Conn) nudge(st *h2Stream) {
	if st != nil {
		if c.nudged = append(c.nudged, st); len(c.nudged) > 1 {
			return
		}
	}
	if c.polled != nil {
		_ = c.polled.Close()
	} else {
		_ = c.net.SetReadDeadline(processStart)
	}
}

// flush writes the frames that wait. The caller holds mu.
func (c *h2Conn) flush() {
	if c.out.Len() == 0 {
		return
	}
	if c.broken == nil && c.failed == nil {
		if err := c.transmit(c.out.Bytes()); err != nil {
			c.broken = fmt.Errorf("write to the connection: %w", err)
			c.nudge(nil)
		}
	}
	emptied(&c.out)
}

// emptied empties a buffer, of which a connection keeps no more than it often needs.
func emptied(b *bytes.Buffer) {
	if b.Reset(); b.Cap() > 256 {
		*b = bytes.Buffer{}
	}
}

// h2WriteFor bounds a write where there is no poller.
const h2WriteFor = 10 * time.Second

func (c *h2Conn) transmit(p []byte) error {
	if c.polled == nil {
		_ = c.net.SetWriteDeadline(time.Now().Add(h2WriteFor))
		_, err := c.net.Write(p)
		return err //nolint:wrapcheck // its caller says of what
	}
	_, err := c.to.Write(p)
	return err //nolint:wrapcheck // its caller says of what
}

var (
	errRetired    = errors.New("the connection was closed because no stream was left on it")
	errHalfStream = fmt.Errorf("the connection ended before the stream did: %w", io.ErrUnexpectedEOF)
	// errUnprocessed is that of a request which the server has not looked at: it is asked again.
	errUnprocessed = errors.New("the server has not processed the request")
	// errResetByPeer has a stream end as one does whose connection was reset.
	errResetByPeer = errors.New("reset by the server")
)

// fail ends the connection, with all its streams. For the reader.
func (c *h2Conn) fail(err error, buf []byte, b *eventstream.Block) {
	var wrong *h2Error
	c.mu.Lock()
	if errors.As(err, &wrong) || err == errRetired {
		code := http2.ErrCodeNo
		if wrong != nil {
			code = wrong.code
		}
		_ = c.framer.WriteGoAway(0, code, nil)
		c.flush()
	}
	switch {
	case err == io.EOF && c.goAwayErr != nil:
		err = c.goAwayErr
	case err == io.EOF && !c.hasSettings:
		err = fmt.Errorf("the server ended the connection without a word of HTTP/2: %w", io.ErrUnexpectedEOF)
	case err == io.EOF:
		err = errHalfStream
	case err == io.ErrUnexpectedEOF: // no connection says so but one of crypto/tls
		err = errHalfRecord
	}
	c.failed = err
	if !c.hasSettings {
		close(c.ready)
		c.hasSettings = true
	}
	turns := c.nudged // streams that have ended may be among them
	c.nudged = nil
	for _, st := range slices.Clone(c.streams) { // each leaves
		st.end(err)
		turns = append(turns, st)
	}
	// A stream that gets its reader only now has its turn in start.
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

// hangUp closes the connection. For the reader.
func (c *h2Conn) hangUp() {
	if c.polled != nil {
		c.sender.close(c.polled.hangUp)
	} else {
		hangUp(c.net)
	}
}
