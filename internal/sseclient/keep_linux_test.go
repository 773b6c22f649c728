package sseclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/test/forward"
	"github.com/sse-soak/sse-soak/test/sockets"
)

const (
	head        = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	chunkedBody = "Transfer-Encoding: chunked\r\n\r\n12\r\n" + twoEvents + "\r\n0\r\n\r\n" // with its header field
	okResponse  = head + chunkedBody
)

// finish makes a POST request and reads the response to its end. It returns the Close and the number of events. fields
// has names and values of header fields.
func finish(t *testing.T, c *Client, url string, on Callbacks, fields ...string) (end Close, events int) {
	t.Helper()
	header := make(http.Header)
	for field := range slices.Chunk(fields, 2) {
		header.Set(field[0], field[1])
	}
	g := c.Group(t.Context())
	defer g.Close()
	done := make(chan struct{})
	on.Request = func(*Stream) Request { return Request{URL: url, Method: http.MethodPost, Header: header, Body: "{}"} }
	on.Event = func(s *Stream, _ time.Time, _ *eventstream.Event) {
		if events++; events == 2 {
			s.KeepConnection()
		}
	}
	on.Closed = func(_ *Stream, _ time.Time, c Close) { end = c }
	on.Ended = func(*Stream) { close(done) }
	g.Add(&Options{ConnectTimeout: time.Minute, IdleTimeout: time.Minute}, &on, nil).Start()
	<-done
	return end, events
}

// respondEach starts a server. It sends the result of response for each request, and closes the connection if that is "".
func respondEach(t *testing.T, response func(n int) string) (url string, accepted, requests *atomic.Int32) {
	t.Helper()
	accepted, requests = new(atomic.Int32), new(atomic.Int32)
	return "http://" + sockets.Serve(t, func(conn net.Conn) {
		accepted.Add(1)
		for in := bufio.NewReader(conn); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			text := response(int(requests.Add(1)))
			if _, err = io.WriteString(conn, text); err != nil || text == "" {
				return
			}
		}
	}), accepted, requests
}

func TestConnectionIsReusedAfterACompleteResponse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		response    string
		unshared    bool
		connections int32 // for three requests
	}{
		"chunks":                 {okResponse, false, 1},
		"trailers":               {strings.Replace(okResponse, "0\r\n\r\n", "0\r\nA: b\r\n\r\n", 1), false, 1},
		"a length":               {head + "Content-Length: 18\r\n\r\n" + twoEvents, false, 1},
		"no reuse by the client": {okResponse, true, 3},
		"Connection: close":      {head + "Connection: close\r\n" + chunkedBody, false, 3},
		"a timeout of 0":         {head + "Keep-Alive: timeout=0\r\n" + chunkedBody, false, 3},
		"HTTP/1.0":               {strings.Replace(head, "1.1", "1.0", 1) + "Connection: keep-alive\r\nContent-Length: 18\r\n\r\n" + twoEvents, false, 3},
		"bytes after the chunks": {okResponse + "H", false, 3},
		"bytes after the length": {head + "Content-Length: 18\r\n\r\n" + twoEvents + "H", false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, accepted, requests := respondEach(t, func(int) string { return tt.response })
			c := &Client{NoSharing: tt.unshared}
			t.Cleanup(c.CloseIdle)
			for range 3 {
				end, events := finish(t, c, url, Callbacks{})
				require.Equal(t, ReasonServer, end.Reason, end.Message())
				require.Equal(t, 2, events)
			}
			require.Equal(t, tt.connections, accepted.Load())
			require.EqualValues(t, 3, requests.Load())
		})
	}
}

func TestConnectionIsClosedAfterABrokenResponse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		response string
		reason   Reason
	}{
		"an incomplete event":    {head + "Content-Length: 10\r\n\r\ndata: a\n\nd", ReasonTruncated},
		"one event of two":       {head + "Content-Length: 9\r\n\r\ndata: a\n\n", ReasonServer}, // KeepConnection is not called
		"another status":         {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", ReasonStatus},
		"a malformed chunk size": {head + "Transfer-Encoding: chunked\r\n\r\n12\r\n" + twoEvents + "\r\nx\r\n", ReasonError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, accepted, _ := respondEach(t, func(int) string { return tt.response })
			c := new(Client)
			for range 2 {
				end, _ := finish(t, c, url, Callbacks{})
				require.Equal(t, tt.reason, end.Reason, end.Message())
			}
			require.EqualValues(t, 2, accepted.Load())
		})
	}
}

func TestConnectionIsReusedOverTLSAndProxies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		scheme  string
		proxy   *forward.Options
		version uint16
	}{
		"TLS 1.2":                   {"https", nil, tls.VersionTLS12},
		"TLS 1.3":                   {"https", nil, tls.VersionTLS13},
		"a proxy":                   {"http", &forward.Options{}, 0},
		"a proxy with TLS":          {"http", &forward.Options{TLS: sockets.ServerTLS()}, 0},
		"TLS through a plain proxy": {"https", &forward.Options{}, tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush() // chunked
				_, _ = io.WriteString(w, twoEvents)
			}))
			if tt.scheme == "https" {
				server.TLS = &tls.Config{MinVersion: tt.version, MaxVersion: tt.version}
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			var dials atomic.Int32
			c := &Client{
				TLS: func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} },
				Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
					dials.Add(1)
					return dialCounted(ctx, network, address)
				},
			}
			t.Cleanup(c.CloseIdle)
			_, host, _ := strings.Cut(server.URL, "://")
			target := server.URL
			if tt.proxy != nil {
				o := *tt.proxy
				o.Resolve = func(string) string { return host }
				proxy, err := forward.Start(o)
				require.NoError(t, err)
				t.Cleanup(proxy.Stop)
				c.Proxies = func(*url.URL) (*url.URL, error) { return url.Parse(proxy.URL) }
				target = tt.scheme + "://service.test"
			}
			for range 20 {
				end, events := finish(t, c, target, Callbacks{})
				require.Equal(t, ReasonServer, end.Reason, end.Message())
				require.Equal(t, 2, events)
			}
			require.EqualValues(t, 1, dials.Load())
		})
	}
}

// endIdle returns an exchange. After it has taken an idle connection, the server closes that connection.
func endIdle(t *testing.T, c *Client, closeConn func()) *exchange {
	t.Helper()
	first := true
	return &exchange{client: c, attach: func(conn net.Conn) bool {
		if first {
			first = false
			closeConn()
			require.Eventually(t, func() bool { return !http1.Reusable(conn) }, patience, time.Millisecond)
		}
		return true
	}}
}

// A request that is sent after the server has closed the connection is sent again, once, with any method.
func TestRequestThatNeverArrivedIsSentAgain(t *testing.T) {
	t.Parallel()
	conns := make(chan net.Conn, 2)
	var requests atomic.Int32
	address := sockets.Serve(t, func(conn net.Conn) {
		conns <- conn
		for in := bufio.NewReader(conn); ; requests.Add(1) {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, okResponse)
		}
	})
	c := new(Client)
	end, _ := finish(t, c, "http://"+address, Callbacks{})
	require.Equal(t, ReasonServer, end.Reason)
	e := endIdle(t, c, func() { _ = (<-conns).Close() })
	u, err := ParseURL("http://" + address)
	require.NoError(t, err)
	r, fail := e.open(t.Context(), &request{url: u, method: http.MethodPost, body: "{}"})
	require.Nil(t, fail)
	require.False(t, r.reused)
	hangUp(r.conn)
	require.EqualValues(t, 2, requests.Load())
}

// A request fails if the server has received it and ends the connection without a response, even on a reused
// connection.
func TestRequestThatArrivedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"", "HTTP/1.1 20"} {
		url, accepted, requests := respondEach(t, func(n int) string {
			if n == 2 {
				return ""
			}
			return okResponse
		})
		c := new(Client)
		t.Cleanup(c.CloseIdle)
		for n := range 3 {
			end, _ := finish(t, c, url, Callbacks{})
			want := ReasonServer
			if n == 1 {
				want = ReasonTruncated
			}
			require.Equal(t, want, end.Reason, end.Message(), part)
		}
		require.EqualValues(t, 3, requests.Load())
		require.EqualValues(t, 2, accepted.Load())
	}
}

// A server may close an idle connection while a request arrives. The request fails only after a reset, because the server
// may then have processed the request. Each other request gets one response.
func TestEachRequestGetsAResponseOrAReset(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 60
	var requests atomic.Int32
	address := sockets.Serve(t, func(conn net.Conn) {
		for in, first := bufio.NewReader(conn), true; ; first = false {
			if !first && requests.Load() > 2*clients { // the first connections are reused
				_ = conn.SetReadDeadline(time.Now().Add(time.Duration(rand.IntN(4000)) * time.Microsecond))
				if _, err := in.Peek(1); err != nil {
					return
				}
				_ = conn.SetReadDeadline(time.Time{})
			}
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			requests.Add(1)
			_, _ = io.WriteString(conn, okResponse)
		}
	})
	c := new(Client)
	t.Cleanup(c.CloseIdle)
	var resets atomic.Int32
	var all sync.WaitGroup
	failures := make(chan error, clients*each)
	for range clients {
		all.Go(func() {
			for range each {
				switch end, events := finish(t, c, "http://"+address, Callbacks{}); {
				case end.Reason == ReasonReset:
					resets.Add(1)
				case end.Reason != ReasonServer || events != 2:
					failures <- errors.New(end.Message())
				}
				time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
			}
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		require.NoError(t, err)
	}
	require.EqualValues(t, clients*each, requests.Load()+resets.Load())
	require.Less(t, resets.Load(), requests.Load())
}

func TestLateHeadersDoNotDelayOtherRequests(t *testing.T) {
	t.Parallel()
	const requests = maxDials + 1
	var arrived sync.WaitGroup
	arrived.Add(requests)
	url, _, _ := respondEach(t, func(int) string {
		arrived.Done()
		arrived.Wait()
		return okResponse
	})
	c := new(Client)
	t.Cleanup(c.CloseIdle)
	g := c.Group(t.Context())
	defer g.Close()
	reasons := make(chan Reason, requests)
	for range requests {
		g.Add(&Options{LateHeader: true}, &Callbacks{
			Request: func(*Stream) Request { return Request{URL: url, Method: http.MethodPost, Body: "{}"} },
			Closed:  func(_ *Stream, _ time.Time, c Close) { reasons <- c.Reason },
		}, nil).Start()
	}
	for range requests {
		require.Equal(t, ReasonServer, <-reasons)
	}
}

// Some servers close each connection after one response, without Connection: close.
func TestConnectionOfAServerWithoutReuseIsNotReused(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int32
	closed := make(chan struct{})
	address := sockets.Serve(t, func(conn net.Conn) {
		first := accepted.Add(1) == 1
		for in := bufio.NewReader(conn); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, okResponse)
			if first {
				_ = conn.Close()
				close(closed)
				return
			}
		}
	})
	c := new(Client)
	t.Cleanup(c.CloseIdle)
	for range 3 {
		end, events := finish(t, c, "http://"+address, Callbacks{})
		require.Equal(t, ReasonServer, end.Reason, end.Message())
		require.Equal(t, 2, events)
		<-closed
	}
	require.EqualValues(t, 3, accepted.Load())
}

func TestConnectionIsClosedAfterARequestToCloseIt(t *testing.T) {
	t.Parallel()
	url, accepted, _ := respondEach(t, func(int) string { return okResponse })
	c := new(Client)
	t.Cleanup(c.CloseIdle)
	for range 2 {
		end, _ := finish(t, c, url, Callbacks{}, "Connection", "Keep-Alive, Close")
		require.Equal(t, ReasonServer, end.Reason, end.Message())
	}
	require.EqualValues(t, 2, accepted.Load())
}

func TestCutConnectionIsNotReused(t *testing.T) {
	t.Parallel()
	for _, kind := range []Cut{CutFIN, CutRST, CutVanish} {
		if kind == CutVanish && CanVanish() != nil {
			continue
		}
		url, accepted, _ := respondEach(t, func(int) string { return strings.TrimSuffix(okResponse, "0\r\n\r\n") })
		c := new(Client)
		t.Cleanup(c.CloseIdle)
		for range 2 {
			g := c.Group(context.Background())
			done := make(chan struct{})
			g.Add(&Options{}, &Callbacks{
				Request: func(*Stream) Request { return Request{URL: url, Method: http.MethodPost, Body: "{}"} },
				Block: func(s *Stream, _ time.Time, _ *eventstream.Block) {
					s.KeepConnection()
					s.Cut(kind, 0)
				},
				Ended: func(*Stream) { close(done) },
			}, nil).Start()
			<-done
			g.Close()
		}
		require.EqualValues(t, 2, accepted.Load(), kind)
	}
}
