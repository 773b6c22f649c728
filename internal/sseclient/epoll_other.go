//go:build !linux

package sseclient

import "net"

// polled is a connection without a goroutine, which exists on Linux only.
type polled struct{ blocking }

func poll(net.Conn, turner) *polled { return nil }

func (*polled) start() error { return nil }
