package requests

import (
	"bytes"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
)

// A connection is not reused if the server has closed it or has sent unrequested bytes.
func TestUnusableConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	const tail = "Content-Length: 2\r\n\r\nok"
	const unrequested = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
	for name, response := range map[string]string{
		"closed, announced":    "HTTP/1.1 200 OK\r\nConnection: close\r\n" + tail,
		"closed, unannounced":  "HTTP/1.1 200 OK\r\n" + tail,
		"HTTP/1.0":             "HTTP/1.0 200 OK\r\n" + tail,
		"unrequested response": "HTTP/1.1 200 OK\r\n" + tail,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			received := make(chan bool, 1) // the client has read the response
			u := serveRaw(t, func(conn net.Conn, request func() bool) {
				opened.Add(1)
				_ = request()
				_, _ = conn.Write([]byte(response))
				if strings.HasPrefix(name, "unrequested") {
					<-received
					_, _ = conn.Write([]byte(unrequested))
					_ = request() // waits for the client to close
				}
			})
			l, makeRequest := newVU(t).lane(`{url: %q, want: {body: 'ok'}}`, u)
			for n := range int64(5) {
				require.Equal(t, "ok", makeRequest())
				require.Equal(t, n+1, opened.Load())
				if strings.HasPrefix(name, "unrequested") {
					received <- true
				}
				if l.conn != nil {
					l.awaitUnusable(t)
				}
			}
		})
	}
}

// A burst opens a connection before it sends a request. In the meantime, some servers, such as SMTP and SSH servers,
// send a greeting.
func TestBytesBeforeTheFirstRequestAreCounted(t *testing.T) {
	t.Parallel()
	u := serveRaw(t, func(conn net.Conn, request func() bool) {
		_, _ = conn.Write([]byte("220 ready\r\n"))
		_ = request() // waits for the client to close
	})
	v := newVU(t)
	l, _ := v.lane(`{url: %q}`, u)
	x := exchange{op: l.s.operations[0], deadline: time.Now().Add(time.Minute)}
	require.NoError(t, l.connect(&x))
	first := l.conn
	l.awaitUnusable(t)
	require.NoError(t, l.connect(&x))
	require.NotSame(t, first, l.conn)
	l.s.flush()
	require.EqualValues(t, 1, v.sums()["unrequested_bytes"].total)
}

// A server may refuse a connection as soon as it accepts it. In a burst, the refusal arrives before the request.
func TestRefusalBeforeTheRequestIsItsResponse(t *testing.T) {
	t.Parallel()
	u := serveRaw(t, func(conn net.Conn, request func() bool) {
		_, _ = conn.Write([]byte("HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy"))
	})
	v := newVU(t)
	l, makeRequest := v.lane(`{url: %q}`, u)
	x := exchange{op: l.s.operations[0], deadline: time.Now().Add(time.Minute)}
	require.NoError(t, l.connect(&x))
	l.awaitUnusable(t)
	require.Equal(t, "status-503", makeRequest())
	l.s.flush()
	require.Zero(t, v.sums()["unrequested_bytes"].total)
}

// The code of a failure does not state what the service sent.
func TestFirstFailureOfEachCodeIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for response, want := range map[string]string{
		"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n":         "the response has status 302 Found instead of 200",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nerror":       `the body differs from the expected one; it begins with \"error\"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more": `more bytes follow the response: \" and more\"`,
	} {
		u := serveRaw(t, func(conn net.Conn, request func() bool) {
			for request() {
				_, _ = conn.Write([]byte(response))
			}
		})
		v := newVU(t)
		v.log.SetOutput(&log)
		_, makeRequest := v.lane(`{url: %q, want: {body: 'ok'}}`, u)
		makeRequest()
		makeRequest()
		require.Equal(t, 1, strings.Count(log.String(), want), log.String())
	}
}

func TestNoConnectionReuse(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	u := serveRaw(t, func(conn net.Conn, request func() bool) {
		for opened.Add(1); request(); {
			_, _ = conn.Write([]byte("HTTP/1.1 204 N\r\n\r\n"))
		}
	})
	v := newVU(t, func(s *lib.State) { s.Options.NoConnectionReuse.SetValid(true) })
	v.await(`closed({concurrency: 1, requests: 4, operations: [{url: %q, want: {status: 204}}]})`, u)
	require.EqualValues(t, 4, opened.Load())
}
