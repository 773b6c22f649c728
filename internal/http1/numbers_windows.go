package http1

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// Windows has numbers of its own for what befalls a connection; those of package syscall no call there returns.
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

// number is the number by which this system says the error.
func number(e syscall.Errno) syscall.Errno {
	if n, ok := winsock[e]; ok {
		return n
	}
	return e
}
