package proxy

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a machine without IPv6 addresses a dial to [::1] fails with the same error as a dial without free ports.
func TestLackOfIPv6IsNotALackOfPorts(t *testing.T) {
	previous := HasIPv6
	t.Cleanup(func() { HasIPv6 = previous })
	for _, c := range []struct {
		hasIPv6 bool
		address string
		errno   syscall.Errno
		want    bool
	}{
		{false, "::1", syscall.EADDRNOTAVAIL, true},
		{true, "::1", syscall.EADDRNOTAVAIL, false},
		{false, "127.0.0.1", syscall.EADDRNOTAVAIL, false},
		{false, "::1", syscall.ECONNREFUSED, false},
	} {
		HasIPv6 = func() bool { return c.hasIPv6 }
		err := error(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(c.address), Port: 80}, Err: os.NewSyscallError("connect", c.errno)})
		require.Equal(t, c.want, LacksIPv6(err), c)
	}
	HasIPv6 = func() bool { return false }
	err := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv6loopback, Port: 80}, Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}
	require.EqualError(t, WithRemedy(err), "this machine has no IPv6 address (dial tcp [::1]:80: connect: cannot assign requested address); "+
		"use an IPv4 address of the service, or enable IPv6")
}
