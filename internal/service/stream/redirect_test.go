package stream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// requestWithToken returns a request with a token in its URL and its headers. more is JSON that is added to connect.
func requestWithToken(t *testing.T, base, more string) Request {
	t.Helper()
	s, err := service.Parse([]byte(`{"name":"x","token":true,"message":"unchecked","connect":{"url":"{base}/?access_token={token}",
		"headers":{"Authorization":"Bearer {token}","Cookie":"s={token}","X-Api-Key":"{token}","User-Agent":"u-{token}"}` + more + `}}`))
	require.NoError(t, err)
	r := Fill(&s.Connect, &service.Values{Base: base, Token: "s3cret"})
	r.LastEventID = "7"
	return r
}

// origins starts two servers. The first redirects to the second, which redirects to another of its own paths.
func origins(t *testing.T, status int) (first, second *httptest.Server, got chan *http.Request) {
	t.Helper()
	got = make(chan *http.Request, 10)
	second = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r
		if r.URL.Path != "/end" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	}))
	t.Cleanup(second.Close)
	first = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, second.URL+"/x", status)
	}))
	t.Cleanup(first.Close)
	return first, second, got
}

func TestRedirectsToAnotherOriginAreRefused(t *testing.T) {
	t.Parallel()
	first, second, got := origins(t, http.StatusFound)
	_, err := new(Client).Open(t.Context(), requestWithToken(t, first.URL, ""))
	require.EqualError(t, err, "GET "+first.URL+"/?…: follow the redirect (status 302): "+second.URL+" is another origin; pass --follow-redirects to allow it")
	_, err = new(Client).Do(t.Context(), requestWithToken(t, first.URL, ""))
	require.Error(t, err)
	require.Empty(t, got)
}

func TestDescriptionIsNotSentToAnotherOrigin(t *testing.T) {
	t.Parallel()
	first, second, got := origins(t, http.StatusFound)
	s, err := (&Client{FollowRedirects: true}).Open(t.Context(), requestWithToken(t, first.URL, ""))
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, second.URL, sseclient.Origin(s.URL))
	require.Len(t, got, 2)
	for range 2 {
		r := <-got
		require.Equal(t, http.Header{
			"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}, "Last-Event-Id": {"7"}, "User-Agent": {"sse-soak"},
		}, r.Header, r.URL.Path)
	}
}

func TestAnotherOriginGetsNoBody(t *testing.T) {
	t.Parallel()
	first, second, got := origins(t, http.StatusTemporaryRedirect)
	_, err := (&Client{FollowRedirects: true}).Do(t.Context(), requestWithToken(t, first.URL, `,"method":"POST","body":"{token}"`))
	require.ErrorContains(t, err, "follow the redirect (status 307): "+second.URL+" is another origin, which gets no request with a body")
	require.Empty(t, got)
}

func TestSameOriginGetsHeadersButNoReferer(t *testing.T) {
	t.Parallel()
	hops := make(chan *http.Request, 20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hops <- r
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
		if strings.HasPrefix(r.URL.Path, "/loop") {
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	_, err := new(Client).Do(t.Context(), requestWithToken(t, server.URL, ""))
	require.NoError(t, err)
	<-hops
	r := <-hops
	require.Equal(t, []string{"Bearer s3cret", "s3cret", "u-s3cret", ""}, []string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.UserAgent(), r.Referer()})
	_, err = new(Client).Do(t.Context(), get(server.URL+"/loop"))
	require.EqualError(t, err, "GET "+server.URL+"/loop: more than 10 redirects")
}
