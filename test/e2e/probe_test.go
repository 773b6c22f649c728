//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services"
)

// The description that `soak probe` writes works without changes.
func TestSoakOfProbedDescription(t *testing.T) {
	eachService(t, func(t *testing.T, name string) {
		r := startService(t, name, services.Options{})
		file := filepath.Join(t.TempDir(), name+".js")
		probe := exec.Command(filepath.Join(root, "bin", "soak"), append([]string{"probe", "--seconds", "20", "--out", file}, r.Flags()...)...)
		probe.Env = append(os.Environ(), r.Env...)
		output, err := probe.CombinedOutput()
		require.NoError(t, err, string(output))
		// Each stream receives a message every 5 s, because some services have no heartbeat, or only one every 30 s.
		v := begin(t, r.Env, "--service", file, "--backend-url", r.URL, "--connections", "20",
			"--seconds", "16", "--topics", "10", "--publish-rate", "2").verdict()
		require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	})
}
