//go:build browser

package results

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

// TestBrowser writes pages, and runs the browser test history.test.js on them.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := untested.Browser(t)
	out := t.TempDir()
	writeAllStates(t, out)
	for n := 6; n < 9; n++ {
		writeRun(t, out, n, nil)
	}
	writeRun(t, out, 9, setLate)
	many, empty := filepath.Join(out, "many"), filepath.Join(out, "none")
	for n := range 100 {
		writeRun(t, many, n, func(v *verdict.Verdict) {
			if v.Plan.Connections += n % 3; n%20 == 19 {
				setLate(v)
			}
		})
	}
	require.NoError(t, os.MkdirAll(empty, 0o700))
	for _, folder := range []string{out, many, empty} {
		require.NoError(t, WriteHistory(folder))
	}
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "../report/html/browser/history.test.js")
	cmd.Env = append(os.Environ(), "PAGES="+out, "CHROMIUM="+browser)
	output, err := cmd.CombinedOutput()
	t.Log(string(output))
	require.NoError(t, err)
	if keep := os.Getenv("KEEP_PAGES"); keep != "" {
		require.NoError(t, os.CopyFS(keep, os.DirFS(out)))
	}
}
