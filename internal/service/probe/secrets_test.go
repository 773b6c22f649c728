package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// No secret of the settings is written to a file.
func TestSecretsAreNotWritten(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Token: "s3cret", PubToken: "publisher's"}
	server := h.Start(t)
	give := publishRequest
	give.Headers = []string{"Authorization: Bearer publisher's"}
	module, json := probe(t, server.URL, Config{
		URL: server.URL + "/sub/{topic}?access_token=s3cret&x=1", Connect: Request{Headers: []string{"Authorization: Bearer s3cret", "X-Kind: a"}},
		Publish: give,
	})
	require.NotContains(t, module, "s3cret")
	require.NotContains(t, module, "publisher's")
	require.Contains(t, json, `"token":true,"connect":{"url":"{base}/sub/{topic}?access_token={token}&x=1","headers":{"Authorization":"Bearer {token}","X-Kind":"a"}}`)
	require.Contains(t, json, `"headers":{"Authorization":"Bearer {token}"}`)
	require.Contains(t, json, published)

	give.Headers = []string{"Authorization: Bearer {token}"}
	_, json = probe(t, server.URL, Config{
		URL: server.URL + "/sub/{topic}", Connect: Request{Headers: []string{"Authorization: Bearer {token}"}},
		Publish: give, SubscribeToken: "s3cret", PublishToken: "publisher's",
	})
	require.Contains(t, json, published)
}

// A service may repeat a token in its headers and in its ids.
func TestRepeatedTokensAreNotWritten(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; token="+r.Header.Get("X-Api-Key"))
		fmt.Fprintf(w, "id: %[1]s\nevent: %[1]s\ndata: %[1]s\n\n", r.Header.Get("X-Api-Key"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	module, _ := probe(t, server.URL, Config{URL: server.URL + "/sub", Connect: Request{Headers: []string{"X-Api-Key: s3cret-token"}}})
	require.Contains(t, module, "text/event-stream; token={token}")
	require.Contains(t, module, "Last-Event-ID: {token}")
	require.NotContains(t, module, "s3cret-token")
}

// newRedirectingServer starts a server that redirects to another server. got receives the headers of the requests to the other server.
func newRedirectingServer(t *testing.T) (server, other *httptest.Server, got chan http.Header) {
	t.Helper()
	got = make(chan http.Header, 100)
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(other.Close)
	server = httptest.NewServer(http.RedirectHandler(other.URL+"/x", http.StatusFound))
	t.Cleanup(server.Close)
	return server, other, got
}

func TestSecretsStayWithTheOrigin(t *testing.T) {
	t.Parallel()
	server, other, got := newRedirectingServer(t)
	c := Config{
		URL: server.URL + "/sub?access_token=s3cret", Connect: Request{Headers: []string{"X-Api-Key: s3cret"}},
		Streams: 3, Pace: 40 * time.Millisecond, Length: 1600 * time.Millisecond,
	}
	_, runErr := Run(t.Context(), c)
	_, idleErr := Idle(t.Context(), c)
	for _, err := range []error{runErr, idleErr} {
		require.EqualError(t, err, "GET "+server.URL+"/sub?…: follow the redirect (status 302): "+other.URL+" is another origin; pass --follow-redirects to allow it")
	}
	require.Empty(t, got)

	c.FollowRedirects = true
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(result.Module, "//", "")), " "), "The streams were redirected to another origin, "+strings.ReplaceAll(other.URL, "//", ""))
	require.NotEmpty(t, got)
	for len(got) > 0 {
		header := <-got
		require.Empty(t, header["Referer"])
		require.Empty(t, header["X-Api-Key"])
	}
}

// A service may echo the request.
func TestEchoedTokenIsNotWritten(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			_, _ = fmt.Fprintf(w, "data: {\"path\":%q}\n\n", r.URL)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	module, json := probe(t, server.URL, Config{URL: server.URL + "/sub?access_key=s3cr%2Ft"})
	require.NotContains(t, module, "s3cr")
	require.Contains(t, json, `"url":"{base}/sub?access_key={token}"`)
	require.NotContains(t, json, `"data"`)
}

// Control and format characters of a service can change how a terminal or an editor shows the description (CVE-2021-42574).
func TestDescriptionsHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	const hostile = "\u009b31m\u202e\x1b]0;x\x07"
	h := &fakeservice.Hub{GenerateInterval: 50 * time.Millisecond, Generate: func(_, n int) string {
		return fmt.Sprintf(": %s\nevent: a%s\ndata: {\"n\":%d}\n\n", hostile, hostile, n)
	}}
	module, json := probe(t, h.Start(t).URL, Config{})
	require.Equal(t, format.Escape(module), module)
	require.Contains(t, json, `"event":"a`+"\u009b31m\u202e")
}
