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
	args := []string{"--connections", "20", "--seconds", "9", "--noop-interval", "1"}
	var dirs []string
	for range 2 {
		r := begin(t, nil, args...)
		require.Equal(t, verdict.Pass, r.verdict().Verdict, r.out.String())
		dirs = append(dirs, string(r.dir))
	}
	faulty := begin(t, []string{"BACKEND_FAULT=stall:noop=2"}, args...)
	require.Equal(t, verdict.Fail, faulty.verdict().Verdict, faulty.out.String())
	dirs = append(dirs, string(faulty.dir))

	code, text := compareRuns(t, dirs...)
	require.Equal(t, 1, code, text)
	require.Contains(t, text, "noops missed")

	shorter := begin(t, nil, "--connections", "20", "--seconds", "8", "--noop-interval", "1")
	require.Equal(t, verdict.Pass, shorter.verdict().Verdict, shorter.out.String())
	code, text = compareRuns(t, dirs[0], dirs[1], string(shorter.dir))
	require.Equal(t, 2, code, text)
	require.Contains(t, text, "seconds is 9 in the first and 8 in the second")
}
