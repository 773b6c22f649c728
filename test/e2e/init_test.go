//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
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
	require.Contains(t, string(said), "soak run --connections 10 --seconds 60")
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
