package sseclient

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// maxQueuedBytes limits the queue of a sender. The queue grows while this client writes faster than the connection sends.
const maxQueuedBytes = 256 << 10

// A sender writes to a polled connection without blocking. It queues bytes that do not fit into the send buffer, and
// sends them in a turn of the connection. Any goroutine may write.
type sender struct {
	mu         sync.Mutex
	conn       *polledConn // nil without a poller
	queue      []byte
	awaitsRoom bool // the poller reports room in the send buffer
	isClosed   bool
}

var errQueueFull = errors.New("the send queue of the connection is full; the server or the network is too slow")

// Write sends bytes, and queues the bytes that do not fit into the send buffer. It returns errQueueFull if the queue
// would exceed maxQueuedBytes.
func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return 0, net.ErrClosed
	}
	n := 0
	if len(s.queue) == 0 {
		var err error
		if n, err = s.push(p); err != nil {
			return n, err
		}
	}
	if tail := p[n:]; len(tail) > 0 {
		if len(s.queue)+len(tail) > maxQueuedBytes {
			return n, errQueueFull
		}
		s.queue = append(s.queue, tail...)
		if err := s.notifyRoom(true); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

func (s *sender) push(p []byte) (n int, err error) {
	for n < len(p) {
		written, err := unix.Write(int(s.conn.fd), p[n:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return n, nil
		case err != nil:
			return n, os.NewSyscallError("write", err)
		default:
			n += written
			atomic.AddInt64(s.conn.sent, int64(written))
		}
	}
	return n, nil
}

// notifyRoom sets whether the poller reports room in the send buffer. It does nothing before polledConn.start.
func (s *sender) notifyRoom(room bool) error {
	if s.awaitsRoom == room || !s.isConnStarted() {
		return nil
	}
	s.awaitsRoom = room
	events := uint32(incoming)
	if room {
		events |= unix.EPOLLOUT
	}
	return s.conn.control(unix.EPOLL_CTL_MOD, events)
}

func (s *sender) isConnStarted() bool {
	processPoller.mu.Lock()
	defer processPoller.mu.Unlock()
	return s.conn.isStarted
}

// flush sends queued bytes. It is called in a turn of the connection.
func (s *sender) flush() error {
	if s.conn == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed || len(s.queue) == 0 {
		return nil
	}
	n, err := s.push(s.queue)
	if err != nil {
		return err
	}
	if s.queue = s.queue[n:]; len(s.queue) > 0 {
		return s.notifyRoom(true)
	}
	s.queue = nil
	return s.notifyRoom(false)
}

// close prevents further writes, and calls hangUp, which closes the connection or leaves it half-open.
func (s *sender) close(hangUp func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	hangUp()
}

type queuedCiphertext struct {
	ciphertext
	out *sender
}

func (q queuedCiphertext) Write(p []byte) (int, error) { return q.out.Write(p) }

// poll moves the connection to our poller, and reports whether that is possible. polledConn.start starts the reading.
func (c *h2Conn) poll() bool {
	p := poll(c.net, c)
	if p == nil {
		return false
	}
	c.polled, c.sender.conn = p, p
	if p.tls == nil {
		c.writer = &c.sender
		return true
	}
	c.writer = p.tls
	if socket, ok := p.tls.NetConn().(*tlsSocket); ok {
		if cipher, ok := socket.Conn.(ciphertext); ok {
			socket.Conn = queuedCiphertext{cipher, &c.sender}
		}
	}
	return true
}
