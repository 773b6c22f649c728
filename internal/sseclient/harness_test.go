package sseclient

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync"
	"time"
)

// patience bounds whatever a test waits for.
const patience = 10 * time.Second

const twoEvents = "data: a\n\ndata: b\n\n"

// serverTLS returns a server's configuration with a certificate for 127.0.0.1, which no client trusts.
var serverTLS = sync.OnceValue(func() *tls.Config {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return &tls.Config{Certificates: s.TLS.Certificates}
})

// A line is a connection of which some bytes have been looked at.
type line struct {
	net.Conn
	r    *bufio.Reader
	held *bytes.Buffer // what is written, until inPieces sends it; mostly nil
}

func (l *line) Read(p []byte) (int, error) { return l.r.Read(p) }

func (l *line) Write(p []byte) (int, error) {
	if l.held != nil {
		return l.held.Write(p)
	}
	return l.Conn.Write(p)
}
