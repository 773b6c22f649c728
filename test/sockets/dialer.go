package sockets

import (
	"context"
	"net"
	"os"
	"syscall"
)

// A FailingDialer fails each dial with a system error. It implements k6's lib.DialContexter.
type FailingDialer struct {
	Errno syscall.Errno
	Addr  net.Addr // address in the error; nil: none
}

// DialContext returns the error of a failed connect.
func (d FailingDialer) DialContext(_ context.Context, network, _ string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Addr: d.Addr, Err: os.NewSyscallError("connect", d.Errno)}
}
