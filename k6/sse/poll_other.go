//go:build !linux

package sse

import "net"

// polled is a connection that needs no goroutine: on Linux only.
type polled struct{ parked }

func poll(net.Conn, turner) *polled { return nil }

func pollTCP(net.Conn, *Bare, *int64) *polled { return nil }

func (*polled) start() error { return nil }
