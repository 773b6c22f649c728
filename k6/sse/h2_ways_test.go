package sse

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// h2Ways are those of streams that share connections, by net/http's own server.
var h2Ways = []way{{name: "HTTP/2", tls: true, h2: true}, {name: "HTTP/2, goroutine", tls: true, h2: true, parked: true}}

// allWays are ways and h2Ways: a test of these expects the same of a stream over each transport. Its server writes a
// response as in HTTP/1.1; if that breaks off, the stream does.
var allWays = append(ways[:len(ways):len(ways)], h2Ways...)

// serveFromHTTP1 is serve over HTTP/2 for a server that writes HTTP/1.1.
func serveFromHTTP1(t testing.TB, handle func(p *peer)) string {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ours, theirs := net.Pipe()
		var aborted atomic.Bool
		go func() {
			<-r.Context().Done()
			_ = ours.Close()
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			handle(&peer{Conn: theirs, req: r, n: int(n.Add(1)) - 1, abort: func() { aborted.Store(true); _ = theirs.Close() }})
			_ = theirs.Close()
		}()
		defer func() { _ = ours.Close(); <-done }()
		answer, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = answer.Body.Close() }()
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.StatusCode)
		_ = http.NewResponseController(w).Flush()
		if _, err := io.Copy(unbuffered{w}, answer.Body); err != nil || aborted.Load() {
			panic(http.ErrAbortHandler)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	require.NotEmpty(t, s.URL)
	return s.URL
}

// An unbuffered is a response that is flushed after each write.
type unbuffered struct{ http.ResponseWriter }

func (f unbuffered) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}
