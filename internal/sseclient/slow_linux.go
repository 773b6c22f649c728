package sseclient

import (
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// stays is for how long no silence of a slow stream counts: longer than any run.
const stays = 24 * time.Hour

// turnSlow reads as much of a stream as it may, and reports whether that was its turn. If the server has ended the
// stream, the rest of it is read at once.
func (s *Stream) turnSlow(c *cutting, conn *polled, buf []byte, b *eventstream.Block) (done bool) {
	now := time.Now()
	if c.rate == math.MaxInt32 || conn.hungUp() {
		s.endCut(c)
		s.body.touch(now)
		if err := conn.expect(incoming); err != nil {
			s.finishStream(err)
			return true
		}
		return false
	}
	if !c.done {
		c.done = true
		if err := conn.expect(unix.EPOLLRDHUP); err != nil {
			s.finishStream(err)
			return true
		}
		s.body.touch(now.Add(stays)) // the silence is ours
	}
	if c.rate == 0 || now.Before(c.until) {
		return true
	}
	c.until = now.Add(slowTick)
	time.AfterFunc(slowTick, s.body.transport.interrupt)                                            // gives it a turn
	conn.limited, conn.left = true, int32(max(int64(c.rate)*int64(slowTick)/int64(time.Second), 1)) // #nosec G115 -- the rate is an int32, times a fraction of a second
	if s.bring(buf, b) {
		s.body.touch(now.Add(stays))
	}
	conn.limited = false
	return true
}

// expect says of what the poller is to be told; of a reset it always is. For the reader.
func (c *polled) expect(events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: c.fd}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(processPoller.epoll, unix.EPOLL_CTL_MOD, int(c.fd), &ev))
}

// hungUp reports whether the peer has ended the connection, whatever there is still to read. For the reader.
func (c *polled) hungUp() bool {
	at := []unix.PollFd{{Fd: c.fd, Events: unix.POLLRDHUP}}
	n, err := unix.Poll(at, 0)
	return err == nil && n > 0
}
