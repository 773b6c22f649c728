package http1

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/windows"
)

// winsock maps error numbers of package syscall to the numbers that Windows returns.
var winsock = map[syscall.Errno]syscall.Errno{
	syscall.EADDRINUSE:    windows.WSAEADDRINUSE,
	syscall.EADDRNOTAVAIL: windows.WSAEADDRNOTAVAIL,
	syscall.ECONNABORTED:  windows.WSAECONNABORTED,
	syscall.ECONNRESET:    windows.WSAECONNRESET,
	syscall.EHOSTUNREACH:  windows.WSAEHOSTUNREACH,
	syscall.EMFILE:        windows.WSAEMFILE,
	syscall.ENETUNREACH:   windows.WSAENETUNREACH,
	syscall.ETIMEDOUT:     windows.WSAETIMEDOUT,
}

func systemErrno(e syscall.Errno) syscall.Errno {
	if n, ok := winsock[e]; ok {
		return n
	}
	return e
}

// peek returns ErrUnsupported, because Windows has no read that neither waits nor consumes.
func peek(net.Conn) (pending bool, err error) { return false, errors.ErrUnsupported }
