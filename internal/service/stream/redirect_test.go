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

// requestWithToken returns a request with a token in its URL and its headers.
func requestWithToken(t *testing.T, base string) Request {
	t.Helper()
	s, err := service.Parse([]byte(`{"name":"x","token":true,"message":"unchecked","connect":{"url":"{base}/?access_token={token}",
		"headers":{"Authorization":"Bearer {token}","Cookie":"s={token}","X-Api-Key":"{token}","User-Agent":"u-{token}"}}}`))
	require.NoError(t, err)
	r := Fill(&s.Connect, &service.Values{Base: base, Token: "s3cret"})
	r.LastEventID = "7"
	return r
}

func TestDescriptionIsNotSentToAnotherOrigin(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 10)
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r
		if r.URL.Path != "/end" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	}))
	t.Cleanup(second.Close)
	first := httptest.NewServer(http.RedirectHandler(second.URL+"/x", http.StatusFound))
	t.Cleanup(first.Close)
	s, err := (&Client{FollowRedirects: true}).Open(t.Context(), requestWithToken(t, first.URL))
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
	_, err := new(Client).Do(t.Context(), requestWithToken(t, server.URL))
	require.NoError(t, err)
	<-hops
	r := <-hops
	require.Equal(t, []string{"Bearer s3cret", "s3cret", "u-s3cret", ""}, []string{r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), r.UserAgent(), r.Referer()})
	_, err = new(Client).Do(t.Context(), get(server.URL+"/loop"))
	require.EqualError(t, err, "GET "+server.URL+"/loop: more than 10 redirects")
}
