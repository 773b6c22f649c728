package sseclient

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// dropPackets has the kernel drop whatever comes on a connection: its peer gets no acknowledgement and no reset, as of a machine
// that is gone. Any user may attach a classic filter to its own socket. The last close resets the connection.
func dropPackets(fd uintptr) error {
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K} // of every packet
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	return unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
}

// CanVanish returns an error if a connection cannot be left half-open: a sandbox may forbid the filter that
// dropPackets attaches.
var CanVanish = sync.OnceValue(func() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = dropPackets(uintptr(fd))
	}
	if err != nil {
		return fmt.Errorf("streams cannot vanish here: the kernel refuses a filter on a socket (SO_ATTACH_FILTER: %w), as some sandboxes have it; run where it is allowed", err)
	}
	return nil
})

// turnCut makes the requested cut in a turn of the stream, and reports whether that was its turn. Before a FIN it
// reads what has arrived, as a client does that closes: a close with unread bytes sends a reset.
func (s *Stream) turnCut(c *cutting, buf []byte, b *eventstream.Block) (done bool) {
	conn := polledBy(s.body.transport)
	switch {
	case conn == nil:
		return false
	case c.kind == CutPause:
		return s.turnPause(c, conn)
	case c.kind == cutSlow:
		return s.turnSlow(c, conn, buf, b)
	case c.kind == CutFIN:
		if !s.bring(buf, b) { // it ended by itself
			return true
		}
	case c.kind == CutRST:
		_ = unix.SetsockoptLinger(int(conn.fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		s.abandon(conn.hangUp)
	case c.kind == CutHalf, c.kind == CutGone:
		s.abandon(func() { conn.vanish(c.kind) })
	}
	c.done = true
	s.finishStream(errCut)
	return true
}

// turnPause begins a pause, or ends it when its time is over. In between the stream has no turn but to be stopped.
func (s *Stream) turnPause(c *cutting, conn *polled) (done bool) {
	now := time.Now()
	switch {
	case !c.done:
		if conn.deaf() != nil {
			s.endCut(c) // the read returns the error
			return false
		}
		c.done, c.until = true, now.Add(c.pause)
		s.body.touch(c.until) // the silence is ours
		s.on.Cut(now, CutPause)
		time.AfterFunc(c.pause, s.body.transport.interrupt) // gives it a turn
		return true
	case now.Before(c.until) && !ended(s.body.transport):
		return true
	}
	s.endCut(c)
	s.on.Resumed(now, CutPause)
	if err := conn.listen(); err != nil {
		s.finishStream(err)
		return true
	}
	return false
}

// deaf keeps the poller from being told what comes, listen ends that. For the reader.
func (c *polled) deaf() error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(processPoller.epoll, unix.EPOLL_CTL_DEL, int(c.fd), nil))
}

func (c *polled) listen() error {
	ev := unix.EpollEvent{Events: incoming, Fd: c.fd}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(processPoller.epoll, unix.EPOLL_CTL_ADD, int(c.fd), &ev))
}

// vanish leaves the connection half-open. For the reader.
func (c *polled) vanish(kind Cut) {
	_ = c.deaf() // nothing comes any more
	processPoller.mu.Lock()
	processPoller.forget(c)
	processPoller.mu.Unlock()
	vanished.add(os.NewFile(uintptr(c.fd), "half-open"), kind) // #nosec G115 -- a descriptor
	c.fd = -1
}
