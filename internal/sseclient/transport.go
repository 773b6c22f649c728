package sseclient

import (
	"net"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A transport is the connection of an open stream as its body reads it. A blocking one has a goroutine that waits in Read. A polled
// one has none: the poller reads it when bytes arrive. A stream of HTTP/2 is read with its connection.
type transport interface {
	// Read is that of net.Conn; a polled transport returns errNotReady if it has nothing to read.
	Read(p []byte) (int, error)
	// interrupt makes the reader check whether the server is silent. Any goroutine may call it.
	interrupt()
	// resume ends an interruption: reads continue, until a time unless it is zero. The reader calls it.
	resume(until time.Time)
	// hangUp closes the connection. The reader calls it.
	hangUp()
	// keep leaves the connection to another request and reports whether it did. The reader calls it before hangUp.
	keep() bool
}

// errNotReady is the error of a polled transport that has nothing to read.
var errNotReady error = notReady{}

// notReady does not end a tls.Conn: crypto/tls continues after a temporary error (readRecordOrCCS), even inside a record. It keeps
// any other error for good.
type notReady struct{}

var _ net.Error = notReady{}

func (notReady) Error() string   { return "nothing to read yet" }
func (notReady) Timeout() bool   { return false }
func (notReady) Temporary() bool { return true }

// blocking is a connection whose reader waits in Read.
type blocking struct{ net.Conn }

var _ transport = blocking{}

// interrupt makes the read return os.ErrDeadlineExceeded.
func (c blocking) interrupt() { _ = c.SetReadDeadline(processStart) } // an error comes at the read

func (c blocking) resume(until time.Time) { _ = c.SetReadDeadline(until) } // an error comes again at the read

func (c blocking) hangUp() { hangUp(c.Conn) }

func (c blocking) keep() bool { return false }

// A turner is a stream, or a connection of streams, that the poller reads: its turn reads what has arrived, into a buffer and a
// block of the poller.
type turner interface {
	turn(buf []byte, b *eventstream.Block)
}

var _ turner = (*Stream)(nil)
