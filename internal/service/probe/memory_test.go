package probe

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// A service that sends large events without end must not exhaust the memory of the probe.
func TestPartsOfAStreamUseBoundedMemory(t *testing.T) {
	t.Parallel()
	part := func(mark byte) (p stream.Part) {
		p.Data = bytes.Repeat([]byte{mark}, 1<<20-1)
		return p
	}
	for _, recent := range []bool{false, true} {
		kept := track{keepsLast: recent}
		for i := range 100 {
			kept.store(part(byte(i)))
		}
		size := 0
		for _, p := range kept.parts {
			size += sizeOf(p)
		}
		require.Equal(t, size, kept.size)
		require.LessOrEqual(t, size, maxBytes)
		require.NotEmpty(t, kept.parts)
		first, last := kept.parts[0].Data[0], kept.parts[len(kept.parts)-1].Data[0]
		require.Equal(t, recent, last == 99)
		require.Equal(t, recent, first != 0)
	}
}

// The description of a service quotes neither large data nor a large event name.
func TestDescriptionsDoNotQuoteLargeEvents(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 1<<16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for n := 0; r.Context().Err() == nil; n++ {
			if n%3 == 0 {
				_, _ = w.Write([]byte("event: " + string(large) + "\n"))
			}
			_, _ = w.Write([]byte("data: " + string(large) + "\n\n"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	module, _ := probe(t, server, Config{URL: server.URL + "/sub"})
	require.Less(t, len(module), 16<<10)
}
