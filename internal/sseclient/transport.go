package sseclient

import (
	"net"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A transport is the connection of an open stream as its body reads it. A blocking one has a goroutine that waits in Read. A polled
// one has none: the poller reads it when bytes arrive. A stream of HTTP/2 is read with its connection.
type transport interface {
	// Read is net.Conn's, or errNotReady at once where a polled wire has nothing.
	Read(p []byte) (int, error)
	// interrupt has the stream look whether it is silent. From any goroutine.
	interrupt()
	// resume ends an interruption: reads go on, until a time unless it is zero. For the reader.
	resume(until time.Time)
	// hangUp closes the connection. For the reader.
	hangUp()
}

// errNotReady is what a polled wire says where a parked one would wait.
var errNotReady error = notReady{}

// notReady is no end for crypto/tls: after an error that says it is temporary it reads on where it stopped
// (readRecordOrCCS), even inside a record. Any other error it keeps for good.
type notReady struct{}

var _ net.Error = notReady{}

func (notReady) Error() string   { return "nothing to read yet" }
func (notReady) Timeout() bool   { return false }
func (notReady) Temporary() bool { return true }

// parked is a connection whose reader waits in Read.
type blocking struct{ net.Conn }

var _ transport = blocking{}

// interrupt makes the read return os.ErrDeadlineExceeded.
func (c blocking) interrupt() { _ = c.SetReadDeadline(processStart) } // an error comes at the read

func (c blocking) resume(until time.Time) { _ = c.SetReadDeadline(until) } // an error comes again at the read

func (c blocking) hangUp() { hangUp(c.Conn) }

// A turner is a stream that the poller reads: its turn is to take what has come, into a buffer and a block that are the
// poller's.
type turner interface {
	turn(buf []byte, b *eventstream.Block)
}

var (
	_ turner = (*Stream)(nil)
)
