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

// A Line is a connection that can peek at the next bytes and collect writes.
type Line struct {
	net.Conn

	Reader  *bufio.Reader // reads from the connection
	Pending *bytes.Buffer // collects the written bytes; nil: they are sent
}

// NewLine returns a line that does not collect writes.
func NewLine(conn net.Conn) *Line { return &Line{Conn: conn, Reader: bufio.NewReader(conn)} }

func (l *Line) Read(p []byte) (int, error) { return l.Reader.Read(p) }

func (l *Line) Write(p []byte) (int, error) {
	if l.Pending != nil {
		return l.Pending.Write(p)
	}
	return l.Conn.Write(p)
}
