package trial

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

func TestURLFromAFunctionIsNotTried(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{}
	var notes []string
	require.NoError(t, runTrial(t, h.Start(t).URL, Config{Note: func(s string) { notes = append(notes, s) }}, `"token":true`, `"token":true,"url":true`, `"url":"{base}/sub/{topic}",`, ``))
	require.Equal(t, []string{"url(n) is a function: no stream was tried before the load"}, notes)
	opened, _ := h.StreamCounts()
	require.Zero(t, opened)
}

func TestTokenFromAFunctionIsNotTried(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Token: "of its own"}
	base := h.Start(t).URL
	require.ErrorContains(t, runTrial(t, base, Config{}), "set SUBSCRIBE_TOKEN")
	var notes []string
	require.NoError(t, runTrial(t, base, Config{CustomToken: true, Note: func(s string) { notes = append(notes, s) }}))
	require.Equal(t, []string{"token() does not return SUBSCRIBE_TOKEN: no stream was tried before the load"}, notes)
}

// A service may echo the request.
func TestTrialHidesATokenInTheResponse(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "who is "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
		},
		"in a message": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: " + strings.Repeat("x", 140) + r.Header.Get("Authorization") + "\n\n"))
			w.(http.Flusher).Flush() //nolint:forcetypeassert // of net/http
			if r.Method == http.MethodGet {
				<-r.Context().Done()
			}
		},
	} {
		server := httptest.NewServer(handler)
		err := runTrial(t, server.URL, Config{SubscribeToken: "a-subscriber", PublishToken: "a-publisher", Patience: 2 * time.Second})
		require.ErrorContains(t, err, "{token}", name)
		require.NotContains(t, err.Error(), "a-sub", name)
		require.NotContains(t, err.Error(), "a-pub", name)
		server.CloseClientConnections()
		server.Close()
	}
}
