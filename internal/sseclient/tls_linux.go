package sseclient

import (
	"errors"
	"net"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ciphertext is a polled connection as crypto/tls sees it, in a turn of its stream.
type ciphertext struct {
	net.Conn // nil: TLS calls nothing but what is below
	conn     *polled
	sent     *int64 // k6's data_sent
}

var _ net.Conn = ciphertext{}

// Read takes what is in the socket, or says errNotReady.
func (c ciphertext) Read(p []byte) (int, error) { return c.conn.take(p) }

var errNoRoom = errors.New("the server does not read what TLS answers it")

// Write sends what TLS says by itself: that it has a new key too, or an alert. It never waits.
func (c ciphertext) Write(p []byte) (int, error) {
	for {
		n, err := unix.Write(int(c.conn.fd), p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN, err == nil && n < len(p): // the buffer of the connection is full of answers
			return max(n, 0), errNoRoom
		case err != nil:
			return 0, os.NewSyscallError("write", err)
		}
		atomic.AddInt64(c.sent, int64(n))
		return n, nil
	}
}
