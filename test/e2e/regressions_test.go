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

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Compared with runs of a fast service, a tail of 4 % at 3 s and 0.83 % of failures are regressions, although each of
// these runs passes. An unchanged run is not a regression.
func TestTailsAndFailuresAreRegressions(t *testing.T) {
	t.Parallel()
	var slowNth, failing atomic.Int64 // 0: never
	var requests atomic.Int64
	url := plainServices(t, func(w http.ResponseWriter, _ *http.Request) bool {
		n := requests.Add(1)
		if e := slowNth.Load(); e > 0 && n%e == 0 {
			time.Sleep(3 * time.Second)
		}
		if f := failing.Load(); f > 0 && n%f == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	run := func() string {
		r := smoke(t, "rampup", "--stages", "100", "--stage-seconds", "6", "--warmup-seconds", "1", "--timeout-seconds", "10", "--max-p95-ms", "2000", "--backend-url", url, "--runners", "1")
		v := r.verdict()
		require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
		return string(r.dir)
	}
	var old []string
	for range 5 {
		old = append(old, run())
	}
	same := run()
	slowNth.Store(25)
	tail := run()
	slowNth.Store(0)
	failing.Store(120)
	failed := run()
	for dir, want := range map[string]string{same: "", tail: `mean at 100/s|p99 at 100/s`, failed: "failed at 100/s"} {
		code, text := compareRuns(t, append(old, "--", dir)...)
		if want == "" {
			require.Empty(t, worseMetrics(text), text)
			continue
		}
		require.Equal(t, 1, code, text)
		require.Regexp(t, `(?m)^  - (`+want+`): `, text)
	}
}

// worseMetrics returns the metrics that soak compare reports as worse. It omits the CPU of the service, which is that
// of this process with all its tests.
func worseMetrics(text string) (metrics []string) {
	for _, m := range regexp.MustCompile(`(?m)^  - (.+?): `).FindAllStringSubmatch(text, -1) {
		if m[1] != "service CPU per request" {
			metrics = append(metrics, m[1])
		}
	}
	return metrics
}

// Three runs with three times the response time are detected, alone and together. Three unchanged runs are not. The
// service is so slow that its clock limits the rates, not the machine.
func TestThreeRegressionsInARow(t *testing.T) {
	t.Parallel()
	const usual, slower = 50 * time.Millisecond, 150 * time.Millisecond
	var cost atomic.Int64
	url := plainServices(t, func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(time.Duration(cost.Load()))
		return false
	})
	runThree := func(delay time.Duration) []string {
		cost.Store(int64(delay))
		var dirs [3]string
		var all sync.WaitGroup
		for i := range dirs {
			r := begin(t, nil, "throughput", "--profile", "smoke", "--backend-url", url, "--levels", "5", "--level-seconds", "3", "--volumes", "10", "--runners", "1")
			dirs[i] = string(r.dir)
			all.Go(func() { r.end() })
		}
		all.Wait()
		return dirs[:]
	}
	old, same, slow := runThree(usual), runThree(usual), runThree(slower)
	compare := func(now ...string) []string {
		return append(append([]string{"--tolerance", "0.3"}, old...), append([]string{"--"}, now...)...)
	}
	for _, now := range [][]string{slow[:1], slow[1:2], slow[2:], slow} {
		code, text := compareRuns(t, compare(now...)...)
		require.Equal(t, 1, code, text)
		require.Contains(t, text, "answers/s with 5 at a time")
	}
	for _, now := range [][]string{same[:1], same[1:2], same[2:], same} {
		_, text := compareRuns(t, compare(now...)...)
		require.Empty(t, worseMetrics(text), text)
	}
}
