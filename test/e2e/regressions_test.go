//go:build e2e

package e2e

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Three runs of a service that takes three times as long for an answer are found, alone and together, and three that were not
// slower are not. So slow a service makes the rates those of its own clock, whatever else the machine does.
func TestThreeRegressionsInARow(t *testing.T) {
	t.Parallel()
	const usual, slower = 50 * time.Millisecond, 150 * time.Millisecond
	var cost atomic.Int64
	url := plainServices(t, func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(time.Duration(cost.Load()))
		return false
	})
	three := func(each time.Duration) []string {
		cost.Store(int64(each))
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
	old, same, slow := three(usual), three(usual), three(slower)
	against := func(now ...string) []string {
		return append(append([]string{"--tolerance", "0.3"}, old...), append([]string{"--"}, now...)...)
	}
	for _, now := range [][]string{slow[:1], slow[1:2], slow[2:], slow} {
		code, text := compared(t, against(now...)...)
		require.Equal(t, 1, code, text)
		require.Contains(t, text, "answers/s with 5 at a time")
	}
	for _, now := range [][]string{same[:1], same[1:2], same[2:], same} {
		code, text := compared(t, against(now...)...)
		require.Equal(t, 0, code, text)
		require.Contains(t, text, "NO REGRESSION")
	}
}
