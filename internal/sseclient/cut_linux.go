package sseclient

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// dropPackets makes the kernel drop all packets that arrive on a connection, as if the machine had lost power. The
// close of the last descriptor resets the connection. Any user may attach a classic BPF filter to their own socket.
func dropPackets(fd uintptr) error {
	filter := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K} // accepts 0 bytes of each packet
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	return unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &filter})
}

// CanVanish returns an error if a connection cannot be left half-open. A sandbox may forbid the filter of dropPackets.
var CanVanish = sync.OnceValue(func() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = dropPackets(uintptr(fd))
	}
	if err != nil {
		return fmt.Errorf("leave a stream half-open: the kernel refuses a socket filter (SO_ATTACH_FILTER: %w); run outside a sandbox", err)
	}
	return nil
})

// turnCut makes the requested cut in a turn of the stream. done reports whether the turn is over. Before a FIN, turnCut
// reads the bytes that have arrived, because a close with unread bytes sends a reset.
func (s *Stream) turnCut(c *cutRequest, buf []byte, b *eventstream.Block) (done bool) {
	conn := polledConnOf(s.body.transport)
	switch {
	case conn == nil:
		return false
	case c.kind == CutPause:
		return s.turnPause(c, conn)
	case c.kind == cutSlow:
		return s.turnSlow(c, conn, buf, b)
	case c.kind == CutFIN:
		if !s.readArrived(buf, b) { // the stream has ended
			return true
		}
	case c.kind == CutRST:
		_ = unix.SetsockoptLinger(int(conn.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		s.abandon(conn.hangUp)
	case c.kind == CutHalfOpen, c.kind == CutVanish:
		s.abandon(func() { conn.vanish(c.kind) })
	}
	c.done = true
	s.finishStream(errCut)
	return true
}

// turnPause starts a pause. It ends the pause after its duration, or when the server has ended the HTTP/2 stream.
func (s *Stream) turnPause(c *cutRequest, conn *polledConn) (done bool) {
	now := time.Now()
	switch {
	case !c.done:
		if conn.control(unix.EPOLL_CTL_DEL, 0) != nil {
			s.endCut(c) // the read returns the same error
			return false
		}
		c.done, c.deadline = true, now.Add(c.pause)
		s.body.touch(c.deadline) // the idle timeout starts after the pause
		report(s, s.callbacks.Cut, now, CutPause)
		time.AfterFunc(c.pause, s.body.transport.interrupt) // requests a turn
		return true
	case now.Before(c.deadline) && !hasEnded(s.body.transport):
		return true
	}
	s.endCut(c)
	report(s, s.callbacks.Resumed, now, CutPause)
	if err := conn.control(unix.EPOLL_CTL_ADD, incoming); err != nil {
		s.finishStream(err)
		return true
	}
	return false
}

// vanish leaves the connection half-open. The reader calls it.
func (c *polledConn) vanish(kind Cut) {
	_ = c.control(unix.EPOLL_CTL_DEL, 0) // an error means that the connection is not registered
	processPoller.mu.Lock()
	processPoller.forget(c)
	processPoller.mu.Unlock()
	processVanishedConns.add(os.NewFile(uintptr(c.fd), "half-open"), kind) // #nosec G115 -- a descriptor
	c.fd = -1
}
