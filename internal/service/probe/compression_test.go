package probe

import (
	"compress/gzip"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service/trial"
)

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
