//go:build linux || darwin || freebsd

package sse

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"go.k6.io/k6/v2/lib/netext"
)

// readable says whether a read of the socket would return at once, with bytes, an end or
// an error. The read deadline does not matter to it. TLS's records are not looked into.
func readable(conn net.Conn) bool {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*netext.Conn); ok {
		conn = c.Conn
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true // closed: the read says so
	}
	if e := raw.Control(func(fd uintptr) {
		_, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}); e != nil {
		return true
	}
	return !errors.Is(err, syscall.EAGAIN)
}
