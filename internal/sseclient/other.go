//go:build !linux

package sseclient

import (
	"errors"
	"net"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// dropPackets does nothing: what comes is acknowledged until the buffer of the connection is full.
func dropPackets(uintptr) error { return nil }

// CanVanish returns an error: connections cannot be left half-open.
func CanVanish() error {
	return errors.New("streams can vanish on Linux only: elsewhere the kernel acknowledges whatever comes")
}

func (s *Stream) turnCut(*cutting, []byte, *eventstream.Block) bool { return false }

// polled is a connection without a goroutine, which exists on Linux only.
type polled struct {
	blocking
	idle *idleConns
}

func poll(net.Conn, turner) *polled { return nil }

func (*polled) start() error { return nil }

// unacknowledged returns 0: no connection is reused.
func unacknowledged(net.Conn) int { return 0 }

// A sender is not used without a poller: data is written to the connection directly.
type sender struct{}

func (*sender) Write([]byte) (int, error) { return 0, errNotReady }

func (*sender) flush() error { return nil }

func (*sender) close(hangUp func()) { hangUp() }

func (c *h2Conn) poll() bool { return false }

// leavePages does nothing: other systems count differently.
func leavePages() {}
