package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/sockets"
)

func get(url string) Request { return Request{Request: sseclient.Request{URL: url}} }

func open(t *testing.T, r Request) *Stream {
	t.Helper()
	s, err := new(Client).Open(t.Context(), r)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func next(t *testing.T, s *Stream) Part {
	t.Helper()
	p, err := s.Next()
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), p.At, time.Minute)
	return p
}

func partText(p Part) string {
	return fmt.Sprintf("line %t event %q id %t %q data %t %q comment %t %q", p.Line, p.Event, p.HasID, p.ID, p.HasData, p.Data, p.HasComment, p.Comment)
}

func TestStreamIsReadPartByPart(t *testing.T) {
	h := &fakeservice.Hub{Preamble: ":\nretry: 5\nid: 7\nevent: a\ndata: x\ndata: y\n\nevent: ping\n\n", Lifetime: 200 * time.Millisecond}
	s := open(t, get(h.Start(t).URL+"/sub/t"))
	require.Equal(t, http.StatusOK, s.Status)
	require.True(t, s.IsEventStream())
	require.Equal(t, `line true event "" id false "" data false "" comment true ""`, partText(next(t, s)))
	require.Equal(t, `line false event "a" id true "7" data true "x\ny" comment true ""`, partText(next(t, s)))
	require.Equal(t, `line false event "ping" id false "" data false "" comment false ""`, partText(next(t, s)))
	require.Equal(t, "7", s.LastEventID())
	_, err := s.Next()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "the service closed it", EndInWords(err))
	n, at := s.Received()
	require.EqualValues(t, len(h.Preamble), n)
	require.WithinDuration(t, time.Now(), at, time.Minute)
}

func TestClosedStreamEnds(t *testing.T) {
	url := new(fakeservice.Hub).Start(t).URL + "/sub/t"
	for _, name := range []string{"close", "context"} {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := new(Client).Open(ctx, get(url))
		require.NoError(t, err)
		end := map[string]func(){"close": s.Close, "context": cancel}[name]
		time.AfterFunc(10*time.Millisecond, end)
		_, err = s.Next()
		require.ErrorIs(t, err, context.Canceled, name)
		require.Equal(t, "the client closed it", EndInWords(err))
		s.Close()
		cancel()
	}
	require.Equal(t, "x", EndInWords(errors.New("x")))
}

func TestFailureNamesTheRequestOrTheProxy(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := new(Client).Open(t.Context(), get(server.URL+"/sub?token=secret"))
	require.EqualError(t, err, "GET "+server.URL+"/sub?…: nothing is listening there (connection refused)")
	through := &Client{Proxies: func(*url.URL) (*url.URL, error) { return url.Parse(server.URL) }}
	_, err = through.Open(t.Context(), get("http://service.test/"))
	require.EqualError(t, err, "GET http://service.test/: the proxy "+server.URL+" cannot be reached: dial tcp "+server.URL[len("http://"):]+": connect: connection refused")
}

func requestWithToken(t *testing.T, base string) Request {
	t.Helper()
	s, err := service.Parse([]byte(`{"name":"x","token":true,"message":"unchecked","connect":{"url":"{base}/?access_token={token}",
		"headers":{"Authorization":"Bearer {token}","Cookie":"s={token}","X-Api-Key":"{token}","User-Agent":"u-{token}"}}}`))
	require.NoError(t, err)
	r := Fill(&s.Connect, &service.Values{Base: base, Token: "s3cret"})
	r.LastEventID = "7"
	return r
}

// A redirect within the origin keeps the headers of the description. TestTrialFollowsNoRedirectToAnotherOrigin asserts
// that another origin does not receive them.
func TestRedirectWithinTheOrigin(t *testing.T) {
	t.Parallel()
	hops := make(chan *http.Request, 20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hops <- r
		if r.URL.Path != "/end" {
			http.Redirect(w, r, map[string]string{"/": "/end", "/loop": "/loop"}[r.URL.Path], http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	_, err := new(Client).Do(t.Context(), requestWithToken(t, server.URL))
	require.NoError(t, err)
	<-hops
	r := <-hops
	require.Equal(t, []string{"Bearer s3cret", "s3cret", "u-s3cret", ""}, []string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.UserAgent(), r.Referer()})
	_, err = new(Client).Do(t.Context(), get(server.URL+"/loop"))
	require.EqualError(t, err, "GET "+server.URL+"/loop: more than 10 redirects")
}

// The error quotes the malformed header.
func TestErrorsHideTheToken(t *testing.T) {
	address := sockets.Serve(t, func(conn net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX\x13: s3cret\r\n\r\n")
	})
	_, err := new(Client).Open(t.Context(), requestWithToken(t, "http://"+address))
	require.ErrorContains(t, err, "{token}")
	require.NotContains(t, err.Error(), "s3cret")

	r := requestWithToken(t, "http://x/s3cret")
	require.Equal(t, "GET http://x/{token}/?…", r.String())
}

func TestAcceptEncodingOfTheDescriptionTakesPrecedence(t *testing.T) {
	r := get("http://x")
	r.AcceptEncoding = "gzip"
	require.True(t, r.Accepts("gzip"))
	r.Header = http.Header{"Accept-Encoding": {"br"}}
	require.False(t, r.Accepts("gzip"))
}

func TestCertificatesAreChecked(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, err := new(Client).Do(t.Context(), get(server.URL))
	require.ErrorContains(t, err, "certificate")
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	answer, err := new(Client).Do(t.Context(), get(server.URL))
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, answer.Status)
	require.Equal(t, "404 page not found", answer.Body)
}

// Over TLS, the client negotiates HTTP/2. Over http://, it uses HTTP/2 only if HTTPVersion is 2.
func TestHTTP2Service(t *testing.T) {
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	for _, secure := range []bool{true, false} {
		var client Client
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: %s\n\n", r.Proto)
		}))
		s.Config.Protocols = new(http.Protocols)
		if secure {
			s.Config.Protocols.SetHTTP2(true)
			s.EnableHTTP2 = true
			s.StartTLS()
		} else {
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
			client.HTTPVersion = "2"
		}
		t.Cleanup(s.Close)
		stream, err := client.Open(t.Context(), get(s.URL))
		require.NoError(t, err)
		t.Cleanup(stream.Close)
		require.Equal(t, "HTTP/2.0", string(next(t, stream).Data))
		answer, err := client.Do(t.Context(), get(s.URL))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.Status)
	}
	_, err := (&Client{HTTPVersion: "1.1"}).Open(t.Context(), get("http://127.0.0.1:1"))
	require.ErrorContains(t, err, "connection refused")
}

// A server that expects TLS may close the connection without a response.
func TestClosedConnectionSuggestsTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	_, err := new(Client).Open(t.Context(), get(server.URL+"/x"))
	require.EqualError(t, err, "GET "+server.URL+"/x: read the response header: EOF; if the service uses TLS, use https://")
}
