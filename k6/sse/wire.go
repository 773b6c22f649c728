package sse

import (
	"net"
	"time"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// wire is the connection of an open stream as its body reads it: one of two kinds.
// A parked one has a goroutine that waits in Read. A polled one has none: the poller
// reads it when there is something to read.
type wire interface {
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
type parked struct{ net.Conn }

var _ wire = parked{}

// interrupt makes the read return os.ErrDeadlineExceeded.
func (c parked) interrupt() { _ = c.SetReadDeadline(processStart) } // an error comes at the read

func (c parked) resume(until time.Time) { _ = c.SetReadDeadline(until) } // an error comes again at the read

func (c parked) hangUp() { hangUp(c.Conn) }

// A turner is a stream that the poller reads: its turn is to take what has come, into a buffer and a block that are the
// poller's.
type turner interface {
	turn(buf []byte, b *eventstream.Block)
}

var (
	_ turner = (*source)(nil)
	_ turner = (*Bare)(nil)
)
