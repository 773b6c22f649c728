//go:build unix

package publish

import (
	"net"
	"syscall"
)

// alive says that the peer has not closed an idle connection, and has sent nothing: one read, which does not wait.
func alive(c net.Conn) (ok bool) {
	sc, is := c.(syscall.Conn)
	if !is {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:]) // nothing to read is an error
		ok = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
		return true
	})
	return ok && err == nil
}
