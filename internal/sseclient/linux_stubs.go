//go:build !linux

package sseclient

import (
	"errors"
	"net"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// dropPackets does nothing, so the kernel acknowledges bytes until the receive buffer is full.
func dropPackets(uintptr) error { return nil }

// CanVanish returns an error, because only on Linux can a half-open connection stop acknowledging bytes.
func CanVanish() error {
	return errors.New("leave a stream half-open: supported on Linux only")
}

// turnCut does nothing, because no stream is polled.
func (s *Stream) turnCut(*cutRequest, []byte, *eventstream.Block) bool { return false }

// A polledConn is used on Linux only.
type polledConn struct {
	blockingConn
	idle *idleConns
}

func poll(net.Conn, turner) *polledConn { return nil }

func (*polledConn) start() error { return nil }

func (*polledConn) hasUnread() bool { return false }

// unacknowledgedBytes returns 0, because no connection is reused.
func unacknowledgedBytes(net.Conn) int { return 0 }

// A sender is not used without a poller.
type sender struct{}

func (*sender) Write([]byte) (int, error) { return 0, errNotReady }

func (*sender) flush() error { return nil }

func (*sender) close(hangUp func()) { hangUp() }

func (c *h2Conn) poll() bool { return false }

func releasePages() {}
