package sseclient

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	chunkedBody = "Transfer-Encoding: chunked\r\n\r\n12\r\n" + twoEvents + "\r\n0\r\n\r\n" // includes the header field
	okResponse  = head + chunkedBody
)

// finish makes a POST request and reads the response to its end. It returns the Close and the number of events.
// connection is the Connection header of the request, or "" for none.
func finish(t *testing.T, c *Client, url, connection string) (end Close, events int) {
	t.Helper()
	r := Request{URL: url, Method: http.MethodPost, Body: "{}"}
	if connection != "" {
		r.Header = http.Header{"Connection": {connection}}
	}
	g := c.Group(t.Context())
	defer g.Close()
	done := make(chan struct{})
	g.Add(&Options{ConnectTimeout: time.Minute, IdleTimeout: time.Minute}, &Callbacks{
		Request: func(*Stream) Request { return r },
		Event: func(s *Stream, _ time.Time, _ *eventstream.Event) {
			if events++; events == 2 {
				s.KeepConnection()
			}
		},
		Closed: func(_ *Stream, _ time.Time, c Close) { end = c },
		Ended:  func(*Stream) { close(done) },
	}, nil).Start()
	<-done
	return end, events
}

// lastResponse is a suffix of a response. respondEach does not send the suffix, but closes the connection after the
// response.
const lastResponse = "\x00"

func readRequest(in *bufio.Reader) bool {
	r, err := http.ReadRequest(in)
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	return err == nil
}

// respondEach starts a server that sends response(n) to the nth request.
func respondEach(t *testing.T, response func(n int) string) (url string, accepted, requests *atomic.Int32) {
	t.Helper()
	accepted, requests = new(atomic.Int32), new(atomic.Int32)
	return "http://" + sockets.Serve(t, func(conn net.Conn) {
		accepted.Add(1)
		for in := bufio.NewReader(conn); ; {
			if !readRequest(in) {
				return
			}
			text, isLast := strings.CutSuffix(response(int(requests.Add(1))), lastResponse)
			if _, err := io.WriteString(conn, text); err != nil || isLast {
				return
			}
		}
	}), accepted, requests
}

func TestConnectionIsReusedAfterACompleteResponse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		response    string
		request     string // Connection header of the request
		unshared    bool
		reason      Reason // "": ReasonServer
		connections int32  // for three requests
	}{
		"chunks":                            {response: okResponse, connections: 1},
		"trailers":                          {response: strings.Replace(okResponse, "0\r\n\r\n", "0\r\nA: b\r\n\r\n", 1), connections: 1},
		"a length":                          {response: head + "Content-Length: 18\r\n\r\n" + twoEvents, connections: 1},
		"no reuse by the client":            {response: okResponse, unshared: true, connections: 3},
		"Connection: close":                 {response: head + "Connection: close\r\n" + chunkedBody, connections: 3},
		"Connection: close, by the request": {response: okResponse, request: "Keep-Alive, Close", connections: 3},
		"a timeout of 0":                    {response: head + "Keep-Alive: timeout=0\r\n" + chunkedBody, connections: 3},
		"HTTP/1.0":                          {response: strings.Replace(head, "1.1", "1.0", 1) + "Connection: keep-alive\r\nContent-Length: 18\r\n\r\n" + twoEvents, connections: 3},
		"bytes after the chunks":            {response: okResponse + "H", connections: 3},
		"bytes after the length":            {response: head + "Content-Length: 18\r\n\r\n" + twoEvents + "H", connections: 3},
		"an incomplete event":               {response: head + "Content-Length: 10\r\n\r\ndata: a\n\nd", reason: ReasonTruncated, connections: 3},
		"one event of two":                  {response: head + "Content-Length: 9\r\n\r\ndata: a\n\n", connections: 3}, // KeepConnection is not called
		"another status":                    {response: "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", reason: ReasonStatus, connections: 3},
		"a malformed chunk size":            {response: head + "Transfer-Encoding: chunked\r\n\r\n12\r\n" + twoEvents + "\r\nx\r\n", reason: ReasonError, connections: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, accepted, requests := respondEach(t, func(int) string { return tt.response })
			c := &Client{NoSharing: tt.unshared}
			t.Cleanup(c.CloseIdle)
			for range 3 {
				end, _ := finish(t, c, url, tt.request)
				require.Equal(t, cmp.Or(tt.reason, ReasonServer), end.Reason, end.Message())
			}
			require.Equal(t, tt.connections, accepted.Load())
			require.EqualValues(t, 3, requests.Load())
		})
	}
}

// A request fails if the server has received it and ends the connection without a response, even on a reused
// connection.
func TestRequestThatArrivedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		response    string // to the second request; then the connection ends
		reason      Reason
		connections int32 // for four requests
	}{
		"no response":          {"", ReasonTruncated, 3}, // the client then reuses no connection; see http1.IdleConns.NoteEnd
		"an incomplete header": {"HTTP/1.1 20", ReasonTruncated, 3},
		"a malformed header":   {"HTTP/1.1 OK\r\n\r\n", ReasonError, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, accepted, requests := respondEach(t, func(n int) string {
				if n == 2 {
					return tt.response + lastResponse
				}
				return okResponse
			})
			c := new(Client)
			t.Cleanup(c.CloseIdle)
			for n, want := range []Reason{ReasonServer, tt.reason, ReasonServer, ReasonServer} {
				end, _ := finish(t, c, url, "")
				require.Equal(t, want, end.Reason, "request %d: %s", n+1, end.Message())
			}
			require.EqualValues(t, 4, requests.Load())
			require.Equal(t, tt.connections, accepted.Load())
		})
	}
}

func TestConnectionIsReusedOverTLSAndProxies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		scheme      string
		proxy       *forward.Options
		version     uint16
		connections int32 // for ten requests
	}{
		"TLS 1.2":                      {"https", nil, tls.VersionTLS12, 1},
		"TLS 1.3":                      {"https", nil, tls.VersionTLS13, 1},
		"a proxy":                      {"http", &forward.Options{}, 0, 1},
		"a proxy with TLS":             {"http", &forward.Options{TLS: sockets.ServerTLS()}, 0, 1},
		"TLS through a plain proxy":    {"https", &forward.Options{}, tls.VersionTLS13, 1},
		"TLS through a proxy with TLS": {"https", &forward.Options{TLS: sockets.ServerTLS()}, tls.VersionTLS13, 10}, // not polled
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // a proxy may abort the response while it sends the request
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
					return dialWithCounters(ctx, network, address)
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
			for range 10 {
				end, events := finish(t, c, target, "")
				require.Equal(t, ReasonServer, end.Reason, end.Message())
				require.Equal(t, 2, events)
			}
			require.Equal(t, tt.connections, dials.Load())
		})
	}
}

// A request that is sent after the server has closed the connection is sent again, once, with any method.
func TestRequestThatNeverArrivedIsSentAgain(t *testing.T) {
	t.Parallel()
	conns := make(chan net.Conn, 2)
	var requests atomic.Int32
	address := sockets.Serve(t, func(conn net.Conn) {
		conns <- conn
		for in := bufio.NewReader(conn); readRequest(in); {
			requests.Add(1) // before the response, after which the test reads the count
			_, _ = io.WriteString(conn, okResponse)
		}
	})
	c := new(Client)
	end, _ := finish(t, c, "http://"+address, "")
	require.Equal(t, ReasonServer, end.Reason)
	first := true
	e := &exchange{client: c, attach: func(conn net.Conn) bool {
		if first { // the idle connection, which the server closes now
			first = false
			_ = (<-conns).Close()
			require.Eventually(t, func() bool { return !http1.Reusable(conn) }, patience, time.Millisecond)
		}
		return true
	}}
	u, err := ParseURL("http://" + address)
	require.NoError(t, err)
	r, fail := e.open(t.Context(), &request{url: u, method: http.MethodPost, body: "{}"})
	require.Nil(t, fail)
	require.False(t, r.isReused)
	hangUp(r.conn)
	require.EqualValues(t, 2, requests.Load())
}

// A server may close an idle connection while a request arrives. The request fails only after a reset, because the
// server may then have processed the request. All other requests get one response each.
func TestEachRequestGetsAResponseOrAReset(t *testing.T) {
	t.Parallel()
	const clients, requestsPerClient = 8, 60
	var requests atomic.Int32
	address := sockets.Serve(t, func(conn net.Conn) {
		for in, first := bufio.NewReader(conn), true; ; first = false {
			if !first && requests.Load() > 2*clients { // earlier, each connection is reused
				_ = conn.SetReadDeadline(time.Now().Add(time.Duration(rand.IntN(4000)) * time.Microsecond))
				if _, err := in.Peek(1); err != nil {
					return
				}
				_ = conn.SetReadDeadline(time.Time{})
			}
			if !readRequest(in) {
				return
			}
			requests.Add(1)
			_, _ = io.WriteString(conn, okResponse)
		}
	})
	c := new(Client)
	t.Cleanup(c.CloseIdle)
	var resets atomic.Int32
	var all sync.WaitGroup
	failures := make(chan error, clients*requestsPerClient)
	for range clients {
		all.Go(func() {
			for range requestsPerClient {
				switch end, events := finish(t, c, "http://"+address, ""); {
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
	require.EqualValues(t, clients*requestsPerClient, requests.Load()+resets.Load())
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
			if !readRequest(in) {
				return
			}
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
		end, events := finish(t, c, "http://"+address, "")
		require.Equal(t, ReasonServer, end.Reason, end.Message())
		require.Equal(t, 2, events)
		<-closed
	}
	require.EqualValues(t, 3, accepted.Load())
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
