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

// A way is how the bytes of a stream come to its reader: as they are or by TLS, to the poller or to a goroutine of its own.
type way struct {
	name   string
	tls    bool
	parked bool // as everywhere but on Linux
	h2     bool // over HTTP/2
}

var ways = []way{{name: "plain"}, {name: "TLS", tls: true}, {name: "plain, goroutine", parked: true}, {name: "TLS, goroutine", tls: true, parked: true}}

// polledWays are the ways of Linux.
var polledWays = ways[:2]

// over runs a test of streams once for each of some ways.
func over(t *testing.T, some []way, test func(t *testing.T, w way)) {
	t.Parallel()
	for _, w := range some {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// vu returns a virtual user whose streams use this way.
func (w way) vu(t testing.TB) *vu {
	t.Helper()
	v := newVU(t)
	v.way = w
	v.state.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	if w.parked {
		v.state.Dialer = &net.Dialer{Timeout: patience} // the poller reads connections of k6 only
	}
	return v
}

// serve starts a server for the virtual user's way.
func (v *vu) serve(handle func(p *peer)) string {
	v.t.Helper()
	if v.way.h2 {
		return serveFromHTTP1(v.t, handle)
	}
	url := serve(v.t, handle)
	if v.way.tls {
		return strings.Replace(url, "http:", "https:", 1)
	}
	return url
}

func (v *vu) serveText(text string) string {
	v.t.Helper()
	return v.serve(func(p *peer) { p.say(text) })
}

// accept reads the first byte of a connection, and speaks TLS if the client does.
func accept(conn net.Conn, config *tls.Config) (net.Conn, *sockets.Line) {
	l := sockets.NewLine(conn)
	if b, err := l.Reader.Peek(1); err == nil && b[0] == typeHandshake {
		return tls.Server(l, config), l
	}
	return l, l
}

// inPieces sends what is said meanwhile in pieces of some bytes, each in its own packet; 0: all at once.
func (p *peer) inPieces(size int, say func()) {
	if p.line == nil { // over HTTP/2 it comes in frames
		say()
		return
	}
	p.line.Pending = new(bytes.Buffer)
	say()
	held := p.line.Pending
	p.line.Pending = nil
	if size == 0 {
		size = held.Len()
	}
	for held.Len() > 0 {
		_, _ = p.line.Write(held.Next(size))
		time.Sleep(100 * time.Microsecond)
	}
}
