package sseclient

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// senderQueue bounds what waits for a peer that does not read: far more than a client has to say.
const senderQueue = 256 << 10

// sender writes to a polled connection from any goroutine, and never waits: what finds no room is kept, and sent in a turn
// of the connection.
type sender struct {
	mu      sync.Mutex
	conn    *polled // nil where there is no poller
	queue   []byte
	waiting bool // the poller tells when there is room
	closed  bool
}

var errDoesNotRead = errors.New("the server does not read what it is sent")

func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	n := 0
	if len(s.queue) == 0 {
		var err error
		if n, err = s.push(p); err != nil {
			return n, err
		}
	}
	if rest := p[n:]; len(rest) > 0 {
		if len(s.queue)+len(rest) > senderQueue {
			return n, errDoesNotRead
		}
		s.queue = append(s.queue, rest...)
		if err := s.expect(true); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// push writes as much as there is room for.
func (s *sender) push(p []byte) (n int, err error) {
	for n < len(p) {
		more, err := unix.Write(int(s.conn.fd), p[n:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return n, nil
		case err != nil:
			return n, os.NewSyscallError("write", err)
		default:
			n += more
			atomic.AddInt64(s.conn.sent, int64(more))
		}
	}
	return n, nil
}

// expect has the poller tell of room, or not any more.
func (s *sender) expect(room bool) error {
	if s.waiting == room || !s.started() {
		return nil
	}
	s.waiting = room
	events := uint32(incoming)
	if room {
		events |= unix.EPOLLOUT
	}
	return s.conn.expect(events)
}

// started reports whether the poller has the connection, and with it all queued data.
func (s *sender) started() bool {
	processPoller.mu.Lock()
	defer processPoller.mu.Unlock()
	return s.conn.started
}

// flush sends what waits. In a turn of the connection.
func (s *sender) flush() error {
	if s.conn == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.queue) == 0 {
		return nil
	}
	n, err := s.push(s.queue)
	if err != nil {
		return err
	}
	if s.queue = s.queue[n:]; len(s.queue) > 0 {
		return s.expect(true)
	}
	s.queue = nil
	return s.expect(false)
}

// close has nothing be written any more while the connection is closed.
func (s *sender) close(hangUp func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	hangUp()
}

// queued is ciphertext whose writes do not wait, and do not fail for want of room.
type queued struct {
	ciphertext
	out *sender
}

func (q queued) Write(p []byte) (int, error) { return q.out.Write(p) }

// poll has the poller read the connection, if it can.
func (c *h2Conn) poll() bool {
	p := poll(c.net, c)
	if p == nil {
		return false
	}
	c.polled, c.sender.conn = p, p
	if p.tls == nil {
		c.to = &c.sender
		return true
	}
	c.to = p.tls
	if under, ok := p.tls.NetConn().(*underTLS); ok {
		if cipher, ok := under.Conn.(ciphertext); ok {
			under.Conn = queued{cipher, &c.sender}
		}
	}
	return true
}

var _ net.Conn = queued{}
