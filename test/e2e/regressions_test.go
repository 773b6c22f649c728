//go:build e2e

package e2e

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// worseMetrics returns the metrics that `soak compare` reports as worse. It omits the CPU of the service, because the
// service runs in the process of the tests.
func worseMetrics(text string) (metrics []string) {
	for _, m := range regexp.MustCompile(`(?m)^  - (.+?): `).FindAllStringSubmatch(text, -1) {
		if m[1] != "service CPU per request" {
			metrics = append(metrics, m[1])
		}
	}
	return metrics
}

// A run with three times the response time is a regression, and an unchanged run is not. The unchanged runs take place
// at the same time, so that the machine is equally busy in each. The delays of the service limit the rates.
func TestRegressionIsReported(t *testing.T) {
	t.Parallel()
	var delay atomic.Int64
	url := plainServices(t, func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(time.Duration(delay.Load()))
		return false
	})
	start := func() *soakRun {
		return smoke(t, "throughput", "--backend-url", url, "--levels", "5", "--level-seconds", "3", "--volumes", "10")
	}
	var dirs []string
	end := func(runs ...*soakRun) {
		for _, r := range runs {
			r.end()
			dirs = append(dirs, string(r.dir))
		}
	}
	delay.Store(int64(50 * time.Millisecond))
	end(start(), start(), start(), start())
	delay.Store(int64(150 * time.Millisecond))
	end(start())
	args := func(last string) []string {
		return append([]string{"--tolerance", "0.3"}, append(slices.Clone(dirs[:3]), "--", last)...)
	}
	_, text := compareRuns(t, args(dirs[3])...)
	require.Empty(t, worseMetrics(text), text)
	code, text := compareRuns(t, args(dirs[4])...)
	require.Equal(t, 1, code, text)
	require.Contains(t, text, "responses/s with 5 at a time")
}
