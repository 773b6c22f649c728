package probe

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/service/trial"
)

// A run rejects a response that is compressed although the request does not accept compression.
func TestCompressedStreams(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(packed, ": hello\n\n")
			_ = packed.Flush()
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	module, json := probe(t, server.URL, Config{URL: server.URL})
	require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(module, "//", "")), " "), "The streams were compressed (gzip) although the request did not accept it, and soak refuses such streams.")
	s, err := service.Parse([]byte(json))
	require.NoError(t, err)
	require.ErrorContains(t, trial.Run(t.Context(), trial.Config{Service: s, Base: server.URL}), `answered with the Content-Encoding "gzip", which the request does not accept`)
}
