package proxy

import (
	"errors"
	"net"
	"slices"
	"syscall"
)

// LacksIPv6 reports whether a dial failed because its address is an IPv6 address and this machine has none. The system
// returns the same error if no local port is left.
func LacksIPv6(err error) bool {
	var dial *net.OpError
	if !errors.Is(err, syscall.EADDRNOTAVAIL) || !errors.As(err, &dial) {
		return false
	}
	to, ok := dial.Addr.(*net.TCPAddr)
	return ok && to.IP.To4() == nil && !HasIPv6()
}

// HasIPv6 reports whether this machine has an IPv6 address, or its addresses are unknown. Tests replace it.
var HasIPv6 = func() bool {
	addresses, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(addresses, func(a net.Addr) bool {
		address, ok := a.(*net.IPNet)
		return ok && address.IP.To4() == nil
	})
}
