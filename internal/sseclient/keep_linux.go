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

// keep leaves the connection to another request, unless bytes have arrived or the server has ended the connection.
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
	r := &resting{polled: c, ready: make(chan struct{}, 1)}
	c.source = r
	conn := net.Conn(r)
	if c.tls != nil {
		under := below(c.tls)
		under.Conn, under.open = r, false
		conn = c.tls
	}
	c.idle.Put(idleConn{conn})
	return true
}

// A resting connection is a polled one between two streams, which a goroutine uses for its next request. It stays
// with the poller, because a return to Go's network poller and back would cost a tenth of the CPU of a response.
type resting struct {
	net.Conn // nil: only the methods below are called
	polled   *polled
	ready    chan struct{} // has a value after a turn

	mu       sync.Mutex // guards the fields below, and the descriptor
	deadline time.Time  // of Read and Write; zero: none
	stream   turner     // the next stream; nil before its response head
	started  bool       // that stream has the turns
	closed   bool
}

var (
	_ net.Conn     = (*resting)(nil)
	_ syscall.Conn = (*resting)(nil)
)

// pass gives the connection to its next stream, whose turns begin with start. It returns nil if the connection is
// closed.
func (r *resting) pass(stream turner) *polled {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.stream = stream
	return r.polled
}

func (r *resting) start() {
	r.mu.Lock()
	r.started = true
	r.mu.Unlock()
	_ = r.polled.Close() // gives it a turn
}

// turn closes the connection if that was requested, passes the turn to the next stream, or wakes the goroutine that
// reads.
func (r *resting) turn(buf []byte, b *eventstream.Block) {
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

func (r *resting) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// try makes a system call that does not block.
func (r *resting) try(call func(fd int, p []byte) (int, error), p []byte) (int, error) {
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
func (r *resting) Read(p []byte) (int, error) {
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
func (r *resting) await() {
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

// roomRetry is the time between two attempts to write more of a request that does not fit into the buffer of the
// connection.
const roomRetry = time.Millisecond

func (r *resting) Write(p []byte) (sent int, err error) {
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

// Close makes the poller close the connection, or gives its next stream a turn. Any goroutine may call it.
func (r *resting) Close() error {
	r.mu.Lock()
	r.closed = r.closed || r.stream == nil
	r.mu.Unlock()
	r.wake()
	return r.polled.Close()
}

func (r *resting) SetDeadline(t time.Time) error {
	r.mu.Lock()
	r.deadline = t
	r.mu.Unlock()
	r.wake()
	return nil
}

func (r *resting) SetReadDeadline(t time.Time) error  { return r.SetDeadline(t) }
func (r *resting) SetWriteDeadline(t time.Time) error { return r.SetDeadline(t) }

func (r *resting) SyscallConn() (syscall.RawConn, error) { return rawResting{resting: r}, nil }

// rawResting gives access to the descriptor of a resting connection.
type rawResting struct {
	syscall.RawConn // nil: only Control is called
	resting         *resting
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
	raw, err := conn.(syscall.Conn).SyscallConn() // each reused connection has it
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) // 0 proves nothing
	}
	return n
}
