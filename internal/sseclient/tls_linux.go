package sseclient

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"reflect"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ciphertext is a polled connection as crypto/tls sees it, in a turn of its stream.
type ciphertext struct {
	net.Conn // nil: TLS calls nothing but what is below
	conn     *polled
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
		atomic.AddInt64(c.conn.sent, int64(n))
		return n, nil
	}
}

// releaseHandshake releases the two buffers of a tls.Conn that grew to the size of the server's certificates during the handshake
// (golang/go#43563, #81348): 4 KB and more for each of thousands of streams. No method does that, so the fields are found by their
// names; if a version of Go has none, the stream works the same and TestTLSReleasesHandshake fails. Only the reader of the
// connection may call it.
func releaseHandshake(conn *tls.Conn) {
	for _, name := range []string{"rawInput", "hand"} {
		if field, ok := bufferOf(conn, name); ok {
			*field = *bytes.NewBuffer(bytes.Clone(field.Bytes())) // what was read ahead stays
		}
	}
}

func bufferOf(conn *tls.Conn, name string) (*bytes.Buffer, bool) {
	field := reflect.ValueOf(conn).Elem().FieldByName(name)
	if !field.IsValid() {
		return nil, false
	}
	buffer, ok := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(*bytes.Buffer)
	return buffer, ok
}
