package trial

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A trial, like a run, sends the token to no other origin.
func TestTrialFollowsNoRedirectToAnotherOrigin(t *testing.T) {
	t.Parallel()
	h := (&fakeservice.Hub{}).Start(t)
	got := make(chan http.Header, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sub/") {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	replace := []string{`/sub/{topic}","headers":{`, `/sub/{topic}?access_token={token}","headers":{"X-Api-Key":"{token}",`}
	require.EqualError(t, runTrial(t, server.URL, Config{SubscribeToken: "s3cret"}, replace...),
		"connect.url: GET "+server.URL+"/sub/soak-topic-0?…: follow the redirect (status 302): "+other.URL+" is another origin; pass --follow-redirects to allow it")
	require.Empty(t, got)
	require.NoError(t, runTrial(t, server.URL, Config{SubscribeToken: "s3cret", FollowRedirects: true}, replace...))
	require.NotEmpty(t, got)
	for len(got) > 0 {
		header := <-got
		require.Empty(t, header["Referer"])
		require.Empty(t, header["X-Api-Key"])
		require.Empty(t, header["Authorization"])
	}
}

// A run does not follow a redirect of the request that ends a stream, so the trial does not either.
func TestRedirectOfTheEndRequestIsNotFollowed(t *testing.T) {
	t.Parallel()
	h := (&fakeservice.Hub{}).Start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			http.Redirect(w, r, "/elsewhere", http.StatusSeeOther)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	require.EqualError(t, runTrial(t, server.URL, Config{}, `"publish":{`, `"end":{"by":"request","method":"DELETE","url":"{base}/end"},"publish":{`),
		"end.url: DELETE "+server.URL+"/end answered 303 See Other, to /elsewhere, and a run does not follow this redirect; set end.url to the final URL")
}

// The publisher of a run follows no redirects, so the service would refuse all of its messages.
func TestRedirectOfThePublisherFails(t *testing.T) {
	t.Parallel()
	h := (&fakeservice.Hub{}).Start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, h.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	require.EqualError(t, runTrial(t, server.URL, Config{FollowRedirects: true}), "publish.url: POST "+server.URL+"/pub/soak-topic-0 answered 307 Temporary Redirect, to "+h.URL+
		"/pub/soak-topic-0, and a run does not follow this redirect; set publish.url to the final URL")
}
