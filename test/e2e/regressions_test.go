//go:build e2e

package e2e

import (
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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

// Three runs with three times the response time are regressions, alone and together. Three unchanged runs are not. The
// delays of the service limit the rates, so they do not depend on the machine.
func TestThreeRegressionsInARow(t *testing.T) {
	t.Parallel()
	const fastDelay, slowDelay = 50 * time.Millisecond, 150 * time.Millisecond
	var delay atomic.Int64
	url := plainServices(t, func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(time.Duration(delay.Load()))
		return false
	})
	runThree := func(d time.Duration) []string {
		delay.Store(int64(d))
		var dirs [3]string
		var runs sync.WaitGroup
		for i := range dirs {
			r := begin(t, nil, "throughput", "--profile", "smoke", "--backend-url", url, "--levels", "5", "--level-seconds", "3", "--volumes", "10", "--runners", "1")
			dirs[i] = string(r.dir)
			runs.Go(func() { r.end() })
		}
		runs.Wait()
		return dirs[:]
	}
	old, unchanged, slow := runThree(fastDelay), runThree(fastDelay), runThree(slowDelay)
	args := func(dirs ...string) []string {
		return append(append([]string{"--tolerance", "0.3"}, old...), append([]string{"--"}, dirs...)...)
	}
	for _, dirs := range [][]string{slow[:1], slow[1:2], slow[2:], slow} {
		code, text := compareRuns(t, args(dirs...)...)
		require.Equal(t, 1, code, text)
		require.Contains(t, text, "responses/s with 5 at a time")
	}
	for _, dirs := range [][]string{unchanged[:1], unchanged[1:2], unchanged[2:], unchanged} {
		_, text := compareRuns(t, args(dirs...)...)
		require.Empty(t, worseMetrics(text), text)
	}
}
