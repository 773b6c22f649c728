//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// compareRuns runs `soak compare`.
func compareRuns(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(root, "bin", "soak"), append([]string{"compare"}, args...)...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), string(out)
	}
	require.NoError(t, err)
	return 0, string(out)
}

// A lost noop in the last run is a regression, independent of noise.
func TestCompareFindsARegression(t *testing.T) {
	t.Parallel()
	start := func(fault, seconds string) *soakRun {
		return begin(t, []string{"BACKEND_FAULT=" + fault}, "--connections", "20", "--seconds", seconds, "--noop-interval", "1")
	}
	runs := []*soakRun{start("", "9"), start("", "9"), start("stall:noop=2", "9"), start("", "8")}
	var dirs []string
	for i, want := range []verdict.Outcome{verdict.Pass, verdict.Pass, verdict.Fail, verdict.Pass} {
		require.Equal(t, want, runs[i].verdict().Verdict, runs[i].out.String())
		dirs = append(dirs, string(runs[i].dir))
	}
	code, text := compareRuns(t, dirs[:3]...)
	require.Equal(t, 1, code, text)
	require.Contains(t, text, "noops missed")
	code, text = compareRuns(t, dirs[0], dirs[1], dirs[3])
	require.Equal(t, 2, code, text)
	require.Contains(t, text, "seconds is 9 in the first and 8 in the second")
}
