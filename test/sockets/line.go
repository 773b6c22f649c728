package sockets

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync"
)

// ServerTLS returns the TLS configuration of a server with a certificate for 127.0.0.1, which no client trusts.
var ServerTLS = sync.OnceValue(func() *tls.Config {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
})

// A Line is a connection whose next bytes can be read in advance, and whose writes can be collected.
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
