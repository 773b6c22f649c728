package http1

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/windows"
)

// winsock has the numbers that calls on Windows return, which are not those of package syscall.
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

// number returns the number by which this system reports the error.
func number(e syscall.Errno) syscall.Errno {
	if n, ok := winsock[e]; ok {
		return n
	}
	return e
}

// peek is not possible here without waiting.
func peek(net.Conn) (pending bool, err error) { return false, errors.ErrUnsupported }
