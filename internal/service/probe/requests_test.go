package probe

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service/trial"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/memory"
)

// The module contains no secrets from the settings.
func TestSecretsAreNotWritten(t *testing.T) {
	t.Parallel()
	give := publishRequest
	give.Headers = []string{"Authorization: Bearer publisher's"}
	d := probe(t, &fakeservice.Hub{Token: "s3cret", PubToken: "publisher's"}, Config{
		URL: base + "/sub/{topic}?access_token=s3cret&x=1", Connect: Request{Headers: []string{"Authorization: Bearer s3cret", "X-Kind: a"}},
		Publish: give,
	})
	require.NotContains(t, d.module, "s3cret")
	require.NotContains(t, d.module, "publisher's")
	require.Contains(t, d.json, `"token":"SUBSCRIBE_TOKEN","connect":{"url":"{base}/sub/{topic}?access_token={token}&x=1","headers":{"Authorization":"Bearer {token}","X-Kind":"a"}}`)
	require.Contains(t, d.json, `"headers":{"Authorization":"Bearer {token}"}`)
	require.Contains(t, d.json, published)
	require.Equal(t, []string{"SUBSCRIBE_TOKEN", "PUBLISH_TOKEN"}, d.variables)

	give.Headers = []string{"Authorization: Bearer {token}"}
	d = probe(t, &fakeservice.Hub{Token: "s3cret", PubToken: "publisher's"}, Config{
		URL: base + "/sub/{topic}", Connect: Request{Headers: []string{"Authorization: Bearer {token}"}},
		Publish: give, SubscribeToken: "s3cret", PublishToken: "publisher's",
	})
	require.Contains(t, d.json, published)
	require.Empty(t, d.variables)
}

// A service may repeat a token in its headers and in its ids, and echo the request.
func TestRepeatedTokensAreNotWritten(t *testing.T) {
	t.Parallel()
	d := probe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; token="+r.Header.Get("X-Api-Key"))
		fmt.Fprintf(w, "id: %[1]s\nevent: %[1]s\ndata: %[1]s\n\n", r.Header.Get("X-Api-Key"))
		for r.Context().Err() == nil {
			_, _ = fmt.Fprintf(w, "data: {\"path\":%q}\n\n", r.URL)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}), Config{URL: base + "/sub?access_key=s3cr%2Ft", Connect: Request{Headers: []string{"X-Api-Key: s3cr/t"}}})
	require.Contains(t, d.module, "text/event-stream; token={token}")
	require.Contains(t, d.module, "Last-Event-ID: {token}")
	require.NotContains(t, d.module, "s3cr")
	require.Contains(t, d.json, `"url":"{base}/sub?access_key={token}"`)
	require.NotContains(t, d.json, `"data"`)
}

// TestTrialFollowsNoRedirectToAnotherOrigin asserts that the other origin does not receive secrets.
func TestRedirectToAnotherOriginNeedsPermission(t *testing.T) {
	t.Parallel()
	server := http.NewServeMux()
	server.Handle("/", http.RedirectHandler("http://other.test/x", http.StatusFound))
	server.Handle("other.test/", new(fakeservice.Hub))
	server.Handle("other.test/x", http.RedirectHandler("/sub/x", http.StatusFound))
	synctest.Test(t, func(t *testing.T) {
		c := Config{URL: base + "/x?access_token=s3cret", Streams: 3, Length: 20 * time.Second, Dial: memory.Serve(t, server)}
		_, runErr := Run(t.Context(), c)
		_, idleErr := Idle(t.Context(), c)
		for _, err := range []error{runErr, idleErr} {
			require.EqualError(t, err, "GET "+base+"/x?…: follow the redirect (status 302): http://other.test is another origin; pass --follow-redirects, or set followRedirects in a script")
		}
		c.FollowRedirects = true
		result, err := Run(t.Context(), c)
		require.NoError(t, err)
		require.Contains(t, result.Module, "The streams were redirected to another origin, http://other.test")
	})
}

func TestSecondRequest(t *testing.T) {
	t.Parallel()
	d := probe(t, &fakeservice.Hub{RequireJoin: true, ID: func(int) string { return "c1" }}, Config{
		URL: base + "/sub/all", Publish: publishRequest,
		SecondRequest: Request{URL: "{base}/join", Body: `{"client":"{client}","topic":"{topic}"}`},
	})
	require.Contains(t, d.json, `"connect":{"url":"{base}/sub/all","then":{"event":"HELLO","client":"json:$.client","url":"{base}/join","body":"{\"client\":\"{client}\",\"topic\":\"{topic}\"}"}}`)
	require.Contains(t, d.json, published)
	require.Contains(t, d.notes, "The id was the same in all messages of a stream (c1): no sequence.")
	require.Contains(t, d.notes, "The service answered the second request with 204.")
}

func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	for want, service := range map[string]http.HandlerFunc{
		"GET " + base + "/sub answered with no Content-Type, which is not an event stream; pass the URL of an event stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
		},
		"POST " + base + "/join answered 409 Conflict": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusConflict)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: hello\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			dial := memory.Serve(t, service)
			_, err := Run(t.Context(), Config{URL: base + "/sub", SecondRequest: Request{URL: "{base}/join"}, Streams: 1, Length: time.Minute, Dial: dial})
			require.EqualError(t, err, want)
		})
	}
}

// A run rejects a response that is compressed although the request does not accept compression.
func TestCompressedStreams(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		compressor := gzip.NewWriter(w)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(compressor, ": hello\n\n")
			_ = compressor.Flush()
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	})
	const warning = "although the request did not accept compression"
	accepting := probe(t, h, Config{Connect: Request{Headers: []string{"Accept-Encoding: gzip"}}})
	require.NotContains(t, accepting.notes, warning)
	probe(t, h, Config{}, func(t *testing.T, d description, c Config) {
		require.Contains(t, d.notes, "The streams were compressed (gzip) "+warning+", and soak refuses such streams.")
		err := trial.Run(t.Context(), trial.Config{Service: d.Service, Base: base, Dial: c.Dial})
		require.ErrorContains(t, err, `answered with the Content-Encoding "gzip", which the request does not accept`)
	})
}
