package sseclient

import (
	"net"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A transport is the connection of an open stream, from which the body reads. A blocking transport has a goroutine that
// waits in Read. The poller, or the goroutine of an HTTP/2 connection, reads a polled transport.
type transport interface {
	// Read is like Read of net.Conn. A polled transport returns errNotReady if there are no bytes.
	Read(p []byte) (int, error)
	// interrupt makes the reader check whether the server is silent. Any goroutine may call it.
	interrupt()
	// resume ends an interruption. Reads continue until deadline; a zero deadline means no limit. The reader calls it.
	resume(deadline time.Time)
	// hangUp closes the connection. The reader calls it.
	hangUp()
	// keep makes the connection idle and reports whether that is possible. The reader calls it before hangUp.
	keep() bool
}

// errNotReady is the error of a polled transport that has nothing to read.
var errNotReady error = notReady{}

// A notReady is a temporary error, after which crypto/tls continues, even inside a record (readRecordOrCCS). After any
// other error a tls.Conn is unusable.
type notReady struct{}

var _ net.Error = notReady{}

func (notReady) Error() string   { return "nothing to read yet" }
func (notReady) Timeout() bool   { return false }
func (notReady) Temporary() bool { return true }

// A blockingConn is a connection whose reader waits in Read.
type blockingConn struct{ net.Conn }

// interrupt makes the read return os.ErrDeadlineExceeded.
func (c blockingConn) interrupt() { _ = c.SetReadDeadline(processStart) } // the read returns the same error

func (c blockingConn) resume(deadline time.Time) { _ = c.SetReadDeadline(deadline) } // the read returns the same error

func (c blockingConn) hangUp() { hangUp(c.Conn) }

func (c blockingConn) keep() bool { return false }

// A turner is a stream or an HTTP/2 connection that reads with the buffer and the Block of its caller.
type turner interface {
	turn(buf []byte, b *eventstream.Block)
}
