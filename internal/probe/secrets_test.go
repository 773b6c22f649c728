package probe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/hub"
)

// Nothing that was given as a secret is written down.
func TestSecretsAreNotWritten(t *testing.T) {
	t.Parallel()
	h := &hub.Hub{Token: "s3cret", PubToken: "publisher's"}
	server := h.Start(t)
	give := publishing
	give.Headers = []string{"Authorization: Bearer publisher's"}
	module, json := probe(t, server, Config{
		URL: server.URL + "/sub/{topic}?access_token=s3cret&x=1", Connect: Request{Headers: []string{"Authorization: Bearer s3cret", "X-Kind: a"}},
		Publish: give,
	})
	require.NotContains(t, module, "s3cret")
	require.NotContains(t, module, "publisher's")
	require.Contains(t, json, `"token":true,"connect":{"url":"{base}/sub/{topic}?access_token={token}&x=1","headers":{"Authorization":"Bearer {token}","X-Kind":"a"}}`)
	require.Contains(t, json, `"headers":{"Authorization":"Bearer {token}"}`)
	require.Contains(t, json, published)

	give.Headers = []string{"Authorization: Bearer {token}"}
	_, json = probe(t, server, Config{
		URL: server.URL + "/sub/{topic}", Connect: Request{Headers: []string{"Authorization: Bearer {token}"}},
		Publish: give, SubscribeToken: "s3cret", PublishToken: "publisher's",
	})
	require.Contains(t, json, published)
}

// A service may say back what it was sent.
func TestATokenThatTheServiceSaysBackIsNotWritten(t *testing.T) {
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
	module, json := probe(t, server, Config{URL: server.URL + "/sub?access_key=s3cr%2Ft"})
	require.NotContains(t, module, "s3cr")
	require.Contains(t, json, `"url":"{base}/sub?access_key={token}"`)
	require.NotContains(t, json, `"data"`)
}
