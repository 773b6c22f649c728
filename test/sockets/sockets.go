// Package sockets provides a server for tests that read and write the raw bytes of connections.
package sockets

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
)

// Serve calls handle for each connection to the returned address, and closes the connection when handle returns. At the
// end of the test, Serve closes the open connections and waits for all calls.
func Serve(t testing.TB, handle func(conn net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ServeOn(t, l, handle)
	return l.Addr().String()
}

// ServeOn is like Serve, but accepts connections from the given listener.
func ServeOn(t testing.TB, l net.Listener, handle func(conn net.Conn)) {
	var calls sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	calls.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			calls.Go(func() {
				handle(conn)
				_ = conn.Close()
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		calls.Wait()
	})
}

// ServerTLS returns the TLS configuration of a server. The certificate is valid for 127.0.0.1, but no client trusts it.
var ServerTLS = sync.OnceValue(func() *tls.Config {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
})

// A BufferedConn is a connection that can peek at the next bytes and collect writes.
type BufferedConn struct {
	net.Conn

	Reader  *bufio.Reader // reads from the connection
	Pending *bytes.Buffer // collects the written bytes; nil: they are sent
}

// NewBufferedConn returns a connection that does not collect writes.
func NewBufferedConn(conn net.Conn) *BufferedConn {
	return &BufferedConn{Conn: conn, Reader: bufio.NewReader(conn)}
}

func (c *BufferedConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (c *BufferedConn) Write(p []byte) (int, error) {
	if c.Pending != nil {
		return c.Pending.Write(p)
	}
	return c.Conn.Write(p)
}

// A FailingDialer fails each dial with a system error. It implements k6's lib.DialContexter.
type FailingDialer struct {
	Errno syscall.Errno
	Addr  net.Addr // address in the error; nil: none
}

// DialContext returns the error of a failed connect.
func (d FailingDialer) DialContext(_ context.Context, network, _ string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: network, Addr: d.Addr, Err: os.NewSyscallError("connect", d.Errno)}
}
