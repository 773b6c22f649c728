//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJavaScriptLibrary runs the tests of load-tests/lib. Each test case is a check of k6.
func TestJavaScriptLibrary(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "load-tests", "test", "*.test.js"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(scripts), 3)
	url := backend(t, "NOOP_INTERVAL=0.5s")
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			out, err := testScript(script, url)
			require.NoError(t, err, out)
			require.NotContains(t, out, "level=error")
			require.Contains(t, out, "✓ 'rate==1' rate=100.00%", "at least one case must run")
		})
	}
}

func TestJavaScriptTestsFail(t *testing.T) {
	t.Parallel()
	out, err := testScript(filepath.Join("testdata", "failing.test.js"), "")
	require.ErrorContains(t, err, "exit status 99", out)
	require.Contains(t, out, "one is two: Error: the value must be 2, got 1")
}

func testScript(script, url string) (string, error) {
	out, err := exec.Command(filepath.Join(root, "bin", "k6"), "run", "--quiet", "--env", "BACKEND_URL="+url, script).CombinedOutput()
	return string(out), err
}
