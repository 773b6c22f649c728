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

// A ciphertext presents a polled connection to crypto/tls as a net.Conn.
type ciphertext struct {
	net.Conn // nil, because crypto/tls calls only the methods below
	conn     *polledConn
}

func (c ciphertext) Read(p []byte) (int, error) { return c.conn.readSocket(p) }

var errNoRoom = errors.New("the server does not read TLS messages from the connection")

// Write sends messages of crypto/tls, such as a key update or an alert. It does not block.
func (c ciphertext) Write(p []byte) (int, error) {
	for {
		n, err := unix.Write(int(c.conn.fd), p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN, err == nil && n < len(p): // the send buffer is full
			return max(n, 0), errNoRoom
		case err != nil:
			return 0, os.NewSyscallError("write", err)
		}
		atomic.AddInt64(c.conn.sent, int64(n))
		return n, nil
	}
}

// releaseHandshake releases two buffers of a tls.Conn. During the handshake they grow to the size of the server's
// certificates (golang/go#43563, #81348): 4 KB and more per stream. No method of tls.Conn releases them, so
// releaseHandshake finds the fields by their names. If a version of Go renames them, streams still work, but
// TestTLSReleasesHandshake fails. Only the reader of the connection may call releaseHandshake.
func releaseHandshake(conn *tls.Conn) {
	for _, name := range []string{"rawInput", "hand"} {
		if field, ok := bufferOf(conn, name); ok {
			*field = *bytes.NewBuffer(bytes.Clone(field.Bytes())) // keeps bytes after the handshake
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
