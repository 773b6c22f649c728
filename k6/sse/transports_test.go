package sse

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
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

// mixedTransports cover plain and TLS, the poller and a goroutine, each once. They suffice for behavior that hardly
// depends on the transport.
var mixedTransports = transports[1:3]

// polledTransports are the transports that the poller reads.
var polledTransports = transports[:2]

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
		v.state.Dialer = &net.Dialer{Timeout: testTimeout} // the poller reads only connections of k6
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

// serveVU is like the function serveVU, but uses the transport.
func (w transport) serveVU(t testing.TB, handle func(p *peer)) *vu {
	t.Helper()
	v := w.vu(t)
	v.set("url", v.serve(handle))
	return v
}

// accept returns the server side of a connection: with TLS if the first byte starts a TLS handshake.
func accept(conn net.Conn, config *tls.Config) (net.Conn, *sockets.BufferedConn) {
	l := sockets.NewBufferedConn(conn)
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

// h2Transports are the transports of streams that share connections. Their server is a server of net/http.
var h2Transports = []transport{{name: "HTTP/2", tls: true, h2: true}, {name: "HTTP/2, goroutine", tls: true, h2: true, blocking: true}}

// allTransports are for tests that expect the same behavior over each transport. The server of such a test writes an
// HTTP/1.1 response, and truncates the stream by truncating the response.
var allTransports = append(transports[:len(transports):len(transports)], h2Transports...)

// serveFromHTTP1 starts an HTTP/2 server. It converts the HTTP/1.1 response that handle writes.
func serveFromHTTP1(t testing.TB, handle func(p *peer)) string {
	t.Helper()
	var n atomic.Int32
	return httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		client, server := net.Pipe()
		var aborted atomic.Bool
		go func() {
			<-r.Context().Done()
			_ = client.Close()
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			handle(&peer{Conn: server, req: r, n: int(n.Add(1)) - 1, abort: func() { aborted.Store(true); _ = server.Close() }})
			_ = server.Close()
		}()
		defer func() { _ = client.Close(); <-done }()
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = resp.Body.Close() }()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_ = http.NewResponseController(w).Flush()
		if _, err := io.Copy(flushingWriter{w}, resp.Body); err != nil || aborted.Load() {
			panic(http.ErrAbortHandler)
		}
	}, enableHTTP2).URL
}

type flushingWriter struct{ http.ResponseWriter }

func (f flushingWriter) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}
