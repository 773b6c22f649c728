//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// streamOf starts a service whose streams send text(stream, n) for n = 0, 1, … until it is "". The time between two
// texts is at least interval.
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

// A new user calls soak init for a service whose messages cannot be checked, and runs the result. No such run is a
// plain pass.
func TestInitAndRunWithoutCheckableMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval time.Duration
		text     func(stream, n int) string
		wantText string
	}{
		"a quiet service": {time.Second, func(int, int) string { return ": ping\n\n" }, " heartbeats"},
		"prices": {170 * time.Millisecond, func(stream, n int) string {
			if n%3 == stream%2 {
				return ": ping\n\n"
			}
			return fmt.Sprintf("event: price\ndata: {\"price\":%d}\n\n", (n*7919+stream)%1000)
		}, "events that were not checked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, module, _ := initialize(t, streamOf(t, c.interval, c.text)+"/events", "mine")
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
			require.Contains(t, strings.Join(strings.Fields(r.out.String()), " "), c.wantText)
			lines := strings.Split(strings.TrimSpace(r.out.String()), "\n")
			require.Contains(t, r.out.String(), "run `soak init` with --publish-url")
			require.Contains(t, strings.Join(lines[max(len(lines)-2, 0):], " "), "PASS (connections only)", "the verdict is the last line")

			v = strict.verdict()
			require.Equal(t, verdict.Invalid, v.Verdict, strict.out.String())
			require.Contains(t, reasons(v), "REQUIRE_MESSAGES")
		})
	}
}

// Half of the completions of a language model are truncated. Messages are not checked, so the verdict is not a plain
// pass.
func TestTruncatedCompletionsPassWithConnectionsOnly(t *testing.T) {
	t.Parallel()
	url := streamOf(t, 50*time.Millisecond, func(stream, n int) string {
		switch last := 16 + 8*(stream%2); {
		case n == last && stream%2 == 1:
			return "data: [DONE]\n\n"
		case n == last:
			return "data: {\"error\":\"overloaded\"}\n\n"
		case n > last:
			return ""
		}
		return fmt.Sprintf("data: {\"token\":\"%x\"}\n\n", (n*7919+stream)%4096)
	})
	description := filepath.Join(t.TempDir(), "completions.js")
	require.NoError(t, os.WriteFile(description, []byte(`export default { name: 'completions', message: 'unchecked', resume: { by: 'none' },
  connect: { method: 'POST', url: '{base}/v1', body: '{"stream":true}' }, end: { by: 'server', lifetime: [0.5, 10] } };`), 0o600))
	r := begin(t, nil, "--service", description, "--backend-url", url, "--connections", "4", "--seconds", "15")
	v := r.verdict()
	require.True(t, v.ConnectionsOnly(), r.out.String())
	require.False(t, *v.MessagesChecked)
}

// A merge without the shards of one laptop is a pass only without --expect, and the pass has a note.
func TestMergeWithoutOneLaptop(t *testing.T) {
	t.Parallel()
	url, shards := backend(t, "NOOP_INTERVAL=1s"), t.TempDir()
	l := startLaptop(t, url, "laptop-a-", "6", shards)
	require.NoError(t, l.cmd.Wait(), l.out.String())
	v, text := mergeLaptops(t, shards)
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Contains(t, reasons(v), `the shards are of 1 laptop (PREFIX "laptop-a-")`)

	merged := exec.Command(filepath.Join(root, "bin", "soak"), "merge", "--expect", "2", shards)
	output, err := merged.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 2, merged.ProcessState.ExitCode(), string(output))
	v = readVerdict(t, results.Dir(shards))
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, reasons(v), `the shards of 1 of 2 laptops are missing: 2 expected (--expect), 1 found (PREFIX "laptop-a-")`)
	code, text := merge(t, shards, "unused")
	require.Equal(t, 2, code, "the merge must still expect two runners: %s", text)
	require.Contains(t, reasons(readVerdict(t, results.Dir(shards))), "pass --expect 0 to remove it")
	output, err = exec.Command(filepath.Join(root, "bin", "soak"), "merge", "--expect", "0", shards).CombinedOutput()
	require.NoError(t, err, string(output))
}
