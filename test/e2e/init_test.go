//go:build e2e

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/untested"
)

// What a newcomer does: an empty folder, the URL of a stream, and two commands.
func TestAnEmptyFolderSoaks(t *testing.T) {
	t.Parallel()
	url, folder := backend(t, "NOOP_INTERVAL=1"), t.TempDir()
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	begin := exec.Command(soak, "init", url+"/event/connect?id={id}", "--name", "hub", "--seconds", "20")
	begin.Dir = folder
	said, err := begin.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "which checks every message:\n    soak run\n")
	for _, file := range []string{"hub.js", "soak.yaml", ".github/workflows/soak.yml"} {
		require.FileExists(t, filepath.Join(folder, file))
	}
	settings, err := os.ReadFile(filepath.Join(folder, "soak.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(settings), "\nbackend-url: "+url+"\n")

	r := prepare(t, t.TempDir(), nil, nil, "--connections", "10", "--seconds", "15")
	r.cmd.Path, r.cmd.Dir = soak, folder
	r.start()
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "hub", v.Plan.ServiceName())
	require.Contains(t, r.out.String(), "settings of soak.yaml\n")
}

// A developer with a chat service, whose messages have no numbers, gets a verdict about messages from two commands.
func TestAServiceThatPassesOnATextIsSoaked(t *testing.T) {
	t.Parallel()
	service, err := services.Start(t.Context(), "fastapi", services.Options{})
	if missing := (*services.Missing)(nil); errors.As(err, &missing) {
		untested.Missing(t, err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(service.Stop)
	soak, err := filepath.Abs(filepath.Join(root, "bin", "soak"))
	require.NoError(t, err)
	folder := t.TempDir()
	begin := exec.Command(soak, "init", service.URL+"/api/rooms/news/events", "--topic", "news", "--name", "chat", "--seconds", "20",
		"--publish-url", service.URL+"/api/rooms/news/messages",
		"--publish-body", `{"author":"soak","text":"run={run} seq={seq} t={sentAt} sum={sum}"}`)
	begin.Dir = folder
	said, err := begin.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "which checks every message:\n    soak run\n")

	r := prepare(t, t.TempDir(), nil, nil, "--seconds", "20", "--require-messages")
	r.cmd.Path, r.cmd.Dir = soak, folder
	r.start()
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.EqualValues(t, 10, v.Connections.Planned)
	require.Positive(t, v.Messages.Received)
	require.Equal(t, "news", v.Messages.Topics[0].Name)
}
