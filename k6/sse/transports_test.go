package sse

import (
	"bytes"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sse-soak/sse-soak/test/sockets"
)

// A transport is the path of bytes to the reader of a stream: plain or TLS, by the poller or by a goroutine.
type transport struct {
	name     string
	tls      bool
	blocking bool // a goroutine reads each connection, as on systems other than Linux
	h2       bool // the server supports HTTP/2
}

// transports are the transports of streams that do not share connections.
var transports = []transport{
	{name: "plain"}, {name: "TLS", tls: true},
	{name: "plain, goroutine", blocking: true}, {name: "TLS, goroutine", tls: true, blocking: true},
}

// polledTransports are the transports that the poller reads.
var polledTransports = transports[:2]

// runTransports runs a test with each transport of a list.
func runTransports(t *testing.T, list []transport, test func(t *testing.T, w transport)) {
	t.Parallel()
	for _, w := range list {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// vu returns a virtual user whose streams use the transport.
func (w transport) vu(t testing.TB) *vu {
	t.Helper()
	v := newVU(t)
	v.transport = w
	v.state.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	if w.blocking {
		v.state.Dialer = &net.Dialer{Timeout: patience} // the poller reads only connections of k6
	}
	return v
}

// serve starts a server for the transport of the virtual user, and returns its URL. handle serves each connection.
func (v *vu) serve(handle func(p *peer)) string {
	v.t.Helper()
	if v.transport.h2 {
		return serveFromHTTP1(v.t, handle)
	}
	url := serve(v.t, handle)
	if v.transport.tls {
		return strings.Replace(url, "http:", "https:", 1)
	}
	return url
}

// serveText starts a server that sends text on each connection.
func (v *vu) serveText(text string) string {
	v.t.Helper()
	return v.serve(func(p *peer) { p.send(text) })
}

// accept returns the server side of a connection: with TLS if the first byte is that of a TLS handshake.
func accept(conn net.Conn, config *tls.Config) (net.Conn, *sockets.Line) {
	l := sockets.NewLine(conn)
	if b, err := l.Reader.Peek(1); err == nil && b[0] == typeHandshake {
		return tls.Server(l, config), l
	}
	return l, l
}

// sendInPieces calls write, and sends the data in packets of size bytes. If size is 0, it sends one packet.
func (p *peer) sendInPieces(size int, write func()) {
	if p.line == nil { // HTTP/2 splits the data into frames
		write()
		return
	}
	p.line.Pending = new(bytes.Buffer)
	write()
	pending := p.line.Pending
	p.line.Pending = nil
	if size == 0 {
		size = pending.Len()
	}
	for pending.Len() > 0 {
		_, _ = p.line.Write(pending.Next(size))
		time.Sleep(100 * time.Microsecond) // lets the client read each packet separately
	}
}
