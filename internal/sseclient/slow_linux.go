package sseclient

import (
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// slowIdleTimeout is the extension of the idle timeout of a slow stream. Each read renews it.
const slowIdleTimeout = 24 * time.Hour

// turnSlow reads as much of a slow stream as its rate allows. done reports whether the turn is over. turnSlow
// removes the limit if a call of Slow has requested that, or if the server has ended the connection or the HTTP/2
// stream.
func (s *Stream) turnSlow(c *cutRequest, conn *polledConn, buf []byte, b *eventstream.Block) (done bool) {
	now := time.Now()
	if c.rate == math.MaxInt32 || hasEnded(s.body.transport) || conn.peerEnded() {
		s.endCut(c)
		s.body.touch(now)
		if err := conn.control(unix.EPOLL_CTL_MOD, incoming); err != nil {
			s.finishStream(err)
			return true
		}
		return false
	}
	if !c.done {
		c.done = true
		if err := conn.control(unix.EPOLL_CTL_MOD, unix.EPOLLRDHUP); err != nil {
			s.finishStream(err)
			return true
		}
		s.body.touch(now.Add(slowIdleTimeout))
	}
	if c.rate == 0 || now.Before(c.deadline) {
		return true
	}
	wait, budget := slowTick, c.rate*slowTick.Seconds()
	if budget < 1 { // a byte at a time
		wait, budget = time.Duration(min(float64(time.Second)/c.rate, float64(slowIdleTimeout))), 1
	}
	c.deadline = now.Add(wait)
	time.AfterFunc(wait, s.body.transport.interrupt) // requests a turn
	conn.isLimited, conn.budget = true, int32(budget)
	if s.readArrived(buf, b) {
		s.body.touch(now.Add(slowIdleTimeout))
	}
	conn.isLimited = false
	return true
}

// peerEnded reports whether the peer has ended the connection, even if there are unread bytes. The reader calls it.
func (c *polledConn) peerEnded() bool {
	fds := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
