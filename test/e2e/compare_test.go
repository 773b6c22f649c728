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

// Lost noops in the last run are a regression, regardless of noise.
func TestCompareFindsARegression(t *testing.T) {
	t.Parallel()
	start := func(fault string) *soakRun {
		return begin(t, []string{"BACKEND_FAULT=" + fault}, "--connections", "20", "--seconds", "9", "--noop-interval", "1")
	}
	runs := []*soakRun{start(""), start(""), start("stall:noop=2")}
	var dirs []string
	for i, want := range []verdict.Outcome{verdict.Pass, verdict.Pass, verdict.Fail} {
		require.Equal(t, want, runs[i].verdict().Verdict, runs[i].out.String())
		dirs = append(dirs, string(runs[i].dir))
	}
	code, text := compareRuns(t, dirs...)
	require.Equal(t, 1, code, text)
	require.Contains(t, text, "noops missed")
}
