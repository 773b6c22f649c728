package sseclient

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// keep makes the connection idle, unless bytes have arrived or the server has ended the connection.
func (c *polled) keep() bool {
	if c.idle == nil {
		return false
	}
	var one [1]byte
	switch n, err := c.Read(one[:]); {
	case n > 0:
		return false
	case err != errNotReady:
		c.idle.NoteEnd()
		return false
	}
	r := &restingConn{polled: c, ready: make(chan struct{}, 1)}
	c.source = r
	conn := net.Conn(r)
	if c.tls != nil {
		under := tlsSocketOf(c.tls)
		under.Conn, under.open = r, false
		conn = c.tls
	}
	c.idle.Put(idleConn{conn})
	return true
}

// A restingConn is a polled connection between two streams. A goroutine uses it for the next request. It stays with
// the poller, because moving it to Go's network poller and back would cost a tenth of the CPU of a response.
type restingConn struct {
	net.Conn // nil, because only the methods below are called
	polled   *polled
	ready    chan struct{} // has a value after a turn

	mu       sync.Mutex // guards the fields below and the descriptor
	deadline time.Time  // of Read and Write; zero: none
	stream   turner     // the next stream; nil before its response head
	started  bool       // turns go to stream
	closed   bool
}

var (
	_ net.Conn     = (*restingConn)(nil)
	_ syscall.Conn = (*restingConn)(nil)
)

// pass sets the next stream, whose turns start with start. It returns nil if the connection is closed.
func (r *restingConn) pass(stream turner) *polled {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.stream = stream
	return r.polled
}

func (r *restingConn) start() {
	r.mu.Lock()
	r.started = true
	r.mu.Unlock()
	_ = r.polled.Close() // requests a turn
}

// turn closes the connection if requested, passes the turn to the next stream, or wakes the goroutine that reads.
func (r *restingConn) turn(buf []byte, b *eventstream.Block) {
	r.mu.Lock()
	if r.closed {
		r.polled.hangUp()
	}
	started := r.started
	r.mu.Unlock()
	if started {
		r.polled.source = r.stream
		r.stream.turn(buf, b)
		return
	}
	r.wake()
}

func (r *restingConn) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// try makes a non-blocking system call.
func (r *restingConn) try(call func(fd int, p []byte) (int, error), p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.closed:
			return 0, net.ErrClosed
		case !r.deadline.IsZero() && !time.Now().Before(r.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		if n, err := call(int(r.polled.fd), p); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Read waits for bytes.
func (r *restingConn) Read(p []byte) (int, error) {
	for {
		switch n, err := r.try(unix.Read, p); {
		case err == unix.EAGAIN:
			r.await()
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			atomic.AddInt64(r.polled.received, int64(n))
			return n, nil
		}
	}
}

// await waits for the next turn, or until the deadline.
func (r *restingConn) await() {
	r.mu.Lock()
	deadline := r.deadline
	r.mu.Unlock()
	if deadline.IsZero() {
		<-r.ready
		return
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-r.ready:
	case <-timer.C:
	}
}

// roomRetry is the time between two attempts to write to a full send buffer.
const roomRetry = time.Millisecond

func (r *restingConn) Write(p []byte) (sent int, err error) {
	for sent < len(p) {
		n, err := r.try(unix.Write, p[sent:])
		switch {
		case err == unix.EAGAIN:
			time.Sleep(roomRetry)
		case err != nil:
			return sent, os.NewSyscallError("write", err)
		}
		sent += n
		atomic.AddInt64(r.polled.sent, int64(n))
	}
	return sent, nil
}

// Close makes the poller close the connection, or requests a turn for its next stream. Any goroutine may call it.
func (r *restingConn) Close() error {
	r.mu.Lock()
	r.closed = r.closed || r.stream == nil
	r.mu.Unlock()
	r.wake()
	return r.polled.Close()
}

func (r *restingConn) SetDeadline(t time.Time) error {
	r.mu.Lock()
	r.deadline = t
	r.mu.Unlock()
	r.wake()
	return nil
}

func (r *restingConn) SetReadDeadline(t time.Time) error  { return r.SetDeadline(t) }
func (r *restingConn) SetWriteDeadline(t time.Time) error { return r.SetDeadline(t) }

func (r *restingConn) SyscallConn() (syscall.RawConn, error) { return rawResting{resting: r}, nil }

// A rawResting gives access to the descriptor of a restingConn.
type rawResting struct {
	syscall.RawConn // nil, because only Control is called
	resting         *restingConn
}

func (r rawResting) Control(f func(fd uintptr)) error {
	r.resting.mu.Lock()
	defer r.resting.mu.Unlock()
	if r.resting.closed {
		return net.ErrClosed
	}
	f(uintptr(r.resting.polled.fd)) // #nosec G115 -- a descriptor
	return nil
}

// unacknowledged returns the number of bytes that were sent on a connection and not acknowledged by the peer.
func unacknowledged(conn net.Conn) (n int) {
	raw, err := conn.(syscall.Conn).SyscallConn() // each reused connection implements it
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) // on an error n is 0, which proves nothing
	}
	return n
}
