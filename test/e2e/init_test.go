//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
)

// initialize runs `soak init` in an empty folder, and returns the folder, the description and the output.
func initialize(t *testing.T, url, name string, args ...string) (folder, module, output string) {
	t.Helper()
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	folder = t.TempDir()
	cmd := exec.CommandContext(t.Context(), soak, append([]string{"init", url, "--name", name, "--seconds", "20"}, args...)...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(folder, name+".js"))
	require.NoError(t, err)
	return folder, string(text), string(out)
}

// beginInFolder starts `soak run` in a folder whose soak.yaml has the settings of the run.
func beginInFolder(t *testing.T, folder string, args ...string) *soakRun {
	t.Helper()
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	r := prepare(t, t.TempDir(), nil, nil, args...)
	r.cmd.Path, r.cmd.Dir = soak, folder
	r.start()
	return r
}

// `soak init` with the URL of a stream creates all files that `soak run` needs, in an empty folder.
func TestSoakInAnEmptyFolder(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1")
	folder, _, output := initialize(t, url+"/event/connect?id={id}", "hub")
	require.Contains(t, output, "which checks every message:\n    soak run\n")
	require.FileExists(t, filepath.Join(folder, ".github/workflows/soak.yml"))
	settings, err := os.ReadFile(filepath.Join(folder, "soak.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(settings), "\nbackend-url: "+url+"\n")

	r := beginInFolder(t, folder, "--connections", "10", "--seconds", "12")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "hub", v.Plan.ServiceName())
	require.Contains(t, r.out.String(), "using the settings in soak.yaml\n")
}

// `soak init` describes a service that responds to each POST with numbered events and a terminal event.
func TestInitDescribesFiniteResponses(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		for k := range 8 {
			if n != 10 || k != 3 {
				fmt.Fprintf(w, "event: piece\ndata: {\"n\":%d,\"text\":\"a\"}\n\n", k)
				_ = http.NewResponseController(w).Flush()
			}
		}
		fmt.Fprint(w, "event: finished\ndata: {}\n\n")
	}))
	t.Cleanup(server.Close)
	folder, module, output := initialize(t, server.URL+"/ask", "answers", "--method", "POST", "--body", `{"question":"{prompt}"}`)
	require.Contains(t, output, "    soak run finite --rate 1\n")
	require.Contains(t, module, "done: { event: 'finished' },")

	v := beginInFolder(t, folder, "finite", "--rate", "10", "--seconds", "3").verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.EqualValues(t, [2]int64{30, 1}, [2]int64{v.Responses.Complete, int64(v.Messages.Missed)})
	require.Contains(t, reasons(v), "number 3")
}

// `soak init` describes a chat service without a field for numbers: the numbers are in the text of the messages.
func TestSoakOfAPlainTextService(t *testing.T) {
	t.Parallel()
	service := startService(t, "fastapi", services.Options{})
	folder, _, output := initialize(t, service.URL+"/api/rooms/news/events", "chat", "--topic", "news",
		"--publish-url", service.URL+"/api/rooms/news/messages",
		"--publish-body", `{"author":"soak","text":"run={run} seq={seq} t={sentAt} sum={sum}"}`)
	require.Contains(t, output, "which checks every message:\n    soak run\n")

	r := beginInFolder(t, folder, "--seconds", "14", "--require-messages")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.EqualValues(t, 10, v.Connections.Planned)
	require.Positive(t, v.Messages.Received)
	require.Equal(t, "news", v.Messages.Topics[0].Name)
}
