package sse

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// h2Transports are the transports of streams that share connections. Their server is net/http's.
var h2Transports = []transport{{name: "HTTP/2", tls: true, h2: true}, {name: "HTTP/2, goroutine", tls: true, h2: true, blocking: true}}

// allTransports are all transports. A test with them expects the same behaviour over each. Its server writes an HTTP/1.1
// response, and truncates the stream by truncating the response.
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

// A flushingWriter is a writer of a response that flushes after each write.
type flushingWriter struct{ http.ResponseWriter }

func (f flushingWriter) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}
