package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/test/sockets"
)

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

var dialer = &Dialer{
	Dial: new(net.Dialer).DialContext,
	TLS: func(conn net.Conn, server string) *tls.Conn {
		return tls.Client(conn, &tls.Config{ServerName: server, InsecureSkipVerify: true}) // #nosec G402 -- a test server
	},
	MaxHead: 1000,
}

func serve(t *testing.T, handle func(conn net.Conn)) *url.URL {
	t.Helper()
	return &url.URL{Scheme: "http", Host: sockets.Serve(t, handle)}
}

func open(t *testing.T, u *url.URL) *Conn {
	t.Helper()
	c, err := dialer.Open(t.Context(), time.Now().Add(time.Minute), u, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Certificates have the ASCII form of a name (RFC 5280, section 7.2).
func TestTLSNameIsInASCII(t *testing.T) {
	t.Parallel()
	server := serve(t, func(net.Conn) {})
	var name string
	d := &Dialer{
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.Dial(ctx, network, server.Host)
		},
		TLS: func(conn net.Conn, server string) *tls.Conn {
			name = server
			return dialer.TLS(conn, server)
		},
	}
	_, err := d.Open(t.Context(), time.Now().Add(time.Minute), &url.URL{Scheme: "https", Host: "bücher.test"}, nil)
	require.Error(t, err)
	require.Equal(t, "xn--bcher-kva.test", name)
}

func TestHeadSkipsInterimResponsesAndLimitsItsSize(t *testing.T) {
	t.Parallel()
	const interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
	for name, tt := range map[string]struct {
		text   string
		status int
		err    error
	}{
		"a final response":          {okResponse, 200, nil},
		"interim responses":         {interim + interim + okResponse, 200, nil},
		"only interim responses":    {strings.Repeat("HTTP/1.1 102 P\r\n\r\n", 10), 102, ErrInterim},
		"another protocol":          {"HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, nil},
		"nothing":                   {"", 0, io.EOF},
		"an end inside a line":      {"HTTP/1.1 200 OK\r\nCont", 0, io.EOF},
		"a long head":               {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1000), 0, HeadTooLongError(1000)},
		"a long head of many lines": {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 200), 0, HeadTooLongError(1000)},
		"a long body":               {"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + strings.Repeat("x", 5000), 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(strings.NewReader(tt.text), 16, dialer.MaxHead)
			resp, err := r.Head(nil)
			require.ErrorIs(t, err, tt.err)
			if tt.status == 0 {
				return
			}
			require.Equal(t, tt.status, resp.StatusCode)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.EqualValues(t, max(0, resp.ContentLength), len(body))
			require.Empty(t, r.Buffered())
		})
	}
}

// A connection error truncates a line, which the parser of net/http reports as malformed.
func TestConnectionErrorIsReported(t *testing.T) {
	t.Parallel()
	c := open(t, serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nCont")
		_, _ = io.Copy(io.Discard, conn)
	}))
	require.NoError(t, c.SetDeadline(time.Now().Add(200*time.Millisecond)))
	_, err := c.Head(nil)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.False(t, c.FirstByte().IsZero())
	_, _ = c.Write([]byte("x"))
	require.True(t, c.FirstByte().IsZero())
}

func TestPeekUnrequestedFindsBytesAndEndOfAnIdleConnection(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		extra, unrequested string
		ends               bool
	}{
		"is silent":             {},
		"has ended":             {ends: true},
		"has more bytes":        {extra: okResponse, unrequested: "HTTP/1.1 200"},
		"has one byte":          {extra: "x", unrequested: "x"},
		"has a byte and an end": {extra: "x", unrequested: "x", ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, serve(t, func(conn net.Conn) {
				_, _ = io.WriteString(conn, okResponse)
				time.Sleep(200 * time.Millisecond) // so that the client does not read tt.extra with the response
				_, _ = io.WriteString(conn, tt.extra)
				if !tt.ends {
					_, _ = io.Copy(io.Discard, conn)
				}
			}))
			resp, err := c.Head(nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			if tt.extra != "" || tt.ends {
				require.Eventually(t, func() bool {
					start, err := c.PeekUnrequested()
					return err != nil || len(start) == len(tt.unrequested) && tt.extra != ""
				}, time.Minute, time.Millisecond)
			}
			for range 2 { // the first call does not change the result of the second
				start, err := c.PeekUnrequested()
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip("unsupported on this system")
				}
				require.Equal(t, tt.unrequested, string(start))
				require.Equal(t, tt.ends && tt.extra == "", err != nil)
			}
		})
	}
}

func TestPeekUnrequestedIgnoresTLSSessionTickets(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	require.NoError(t, err)
	c := open(t, u)
	time.Sleep(50 * time.Millisecond)
	start, err := c.PeekUnrequested()
	require.Empty(t, start)
	if !errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, err)
	}
	s.CloseClientConnections()
	require.Eventually(t, func() bool { _, err := c.PeekUnrequested(); return err != nil }, time.Minute, time.Millisecond)
}

func TestOpenEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} { // http: a silent proxy; https: a silent TLS server
		u := serve(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		route, err := proxy.Chooser(func(*url.URL) (*url.URL, error) { return u, nil }).For(&url.URL{Scheme: "https", Host: "service.test"})
		require.NoError(t, err)
		to := &url.URL{Scheme: scheme, Host: u.Host}
		if scheme == "https" {
			route = nil
		}
		_, err = dialer.Open(t.Context(), time.Now().Add(50*time.Millisecond), to, route)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
	}
}

func TestContextEndsTheConnection(t *testing.T) {
	t.Parallel()
	u := serve(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	ctx, cancel := context.WithCancel(t.Context())
	c, err := dialer.Open(ctx, time.Now().Add(time.Minute), u, nil)
	require.NoError(t, err)
	defer c.Close()
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = c.Head(nil)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, c.SetDeadline(time.Now().Add(time.Minute)), context.Canceled)
	_, err = c.Head(nil)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a new deadline must have no effect")
}

func TestWriteRequestAddsCredentials(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"http://joe:x@service.test/a?b=c": "GET http://service.test/a?b=c HTTP/1.1, Basic am9lOng=, Basic bWU6eQ==",
		"https://service.test":            "GET / HTTP/1.1, , ",
	} {
		u, err := url.Parse(target)
		require.NoError(t, err)
		route, err := proxy.Chooser(func(*url.URL) (*url.URL, error) { return url.Parse("http://me:y@cache.test") }).For(u)
		require.NoError(t, err)
		var sent strings.Builder
		require.NoError(t, WriteRequest(&sent, &http.Request{URL: u, Host: u.Host, Header: http.Header{}}, route))
		line, _, _ := strings.Cut(sent.String(), "\r\n")
		got, err := http.ReadRequest(bufio.NewReader(strings.NewReader(sent.String())))
		require.NoError(t, err)
		require.Equal(t, want, line+", "+got.Header.Get("Authorization")+", "+got.Header.Get("Proxy-Authorization"))
		require.Equal(t, "service.test", got.Host)
	}
}
