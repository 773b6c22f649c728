//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// streamOf starts a service and returns its URL. Each stream sends text(stream, n) for n = 0, 1, … and ends when text
// returns "". The time between two texts is at least interval.
func streamOf(t *testing.T, interval time.Duration, text func(stream, n int) string) string {
	t.Helper()
	var streams atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := int(streams.Add(1))
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for n := 0; ; n++ {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(interval + interval*time.Duration(n*n%5)/2): // irregular
			}
			block := text(stream, n)
			if block == "" {
				return
			}
			_, _ = fmt.Fprint(w, block)
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A new user calls soak init for a service whose messages cannot be checked, and runs the result. The run passes for
// connections only. With --require-messages, it is invalid.
func TestInitAndRunWithoutCheckableMessages(t *testing.T) {
	t.Parallel()
	url := streamOf(t, 170*time.Millisecond, func(stream, n int) string {
		if n%3 == stream%2 {
			return ": ping\n\n"
		}
		return fmt.Sprintf("event: price\ndata: {\"price\":%d}\n\n", (n*7919+stream)%1000)
	})
	folder, module, _ := initialize(t, url+"/events", "mine")
	require.Contains(t, module, "message: 'unchecked',")
	workflow, err := os.ReadFile(filepath.Join(folder, ".github", "workflows", "soak.yml"))
	require.NoError(t, err)
	require.Contains(t, string(workflow), "\n            --require-messages\n")

	r := beginInFolder(t, folder, "--connections", "4", "--seconds", "15")
	strict := beginInFolder(t, folder, "--connections", "4", "--seconds", "15", "--require-messages")
	v := r.verdict()
	require.NotNil(t, v.MessagesChecked)
	require.False(t, *v.MessagesChecked)
	require.NotContains(t, r.out.String(), "does not name")
	require.True(t, v.ConnectionsOnly(), r.out.String())
	require.Regexp(t, `PASS \(connections only\): \d+ of \d+ streams open to the end, messages were\s+not\s+checked`, r.out.String())
	require.Contains(t, strings.Join(strings.Fields(r.out.String()), " "), "events that were not checked")
	lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
	require.Contains(t, r.out.String(), "run `soak init` with --publish-url")
	require.Contains(t, lines[len(lines)-1], "PASS (connections only)", "the verdict must be the last line")

	v = strict.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict, strict.out.String())
	require.Contains(t, reasons(v), "REQUIRE_MESSAGES")
}
