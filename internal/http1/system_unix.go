//go:build unix

package http1

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peek reports, without waiting, whether there are bytes to read on an idle connection. It fails if the connection
// has ended. A connection without a socket is treated as open with no bytes to read.
func peek(conn net.Conn) (pending bool, err error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		var buf [1]byte
		var n int
		n, _, err = unix.Recvfrom(int(fd), buf[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			err = nil
		case err == nil && n == 0:
			err = io.EOF
		}
		pending = n > 0
	})
	if controlErr != nil {
		return false, controlErr
	}
	return pending, err
}

func systemErrno(e syscall.Errno) syscall.Errno { return e }
