//go:build unix

package requests

import (
	"net"
	"syscall"

	"go.k6.io/k6/v2/lib/netext"
	"golang.org/x/sys/unix"
)

// peek says, without waiting, whether there is something to read on an idle connection, and whether it has ended.
func peek(conn net.Conn) (pending, ended bool) {
	if c, ok := conn.(*netext.Conn); ok {
		conn = c.Conn
	}
	has, ok := conn.(syscall.Conn)
	if !ok {
		return false, false
	}
	raw, err := has.SyscallConn()
	if err != nil {
		return false, true
	}
	var one [1]byte
	err = raw.Control(func(fd uintptr) {
		n, _, failure := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		pending = n > 0
		ended = failure == nil && n == 0 || failure != nil && failure != unix.EAGAIN && failure != unix.EINTR
	})
	return pending, ended || err != nil
}
