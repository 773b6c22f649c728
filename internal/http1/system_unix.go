//go:build unix

package http1

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peek reports, without waiting, whether there are bytes to read on an idle connection. It fails if the connection has ended.
func peek(conn net.Conn) (pending bool, err error) {
	has, ok := conn.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := has.SyscallConn()
	if err != nil {
		return false, err
	}
	failed := raw.Control(func(fd uintptr) {
		var one [1]byte
		var n int
		n, _, err = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			err = nil
		case err == nil && n == 0:
			err = io.EOF
		}
		pending = n > 0
	})
	if failed != nil {
		return false, failed
	}
	return pending, err
}

// number returns the error number of this system.
func number(e syscall.Errno) syscall.Errno { return e }
