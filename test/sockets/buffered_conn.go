package sockets

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync"
)

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
