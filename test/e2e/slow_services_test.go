//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A service whose responses are all slower than the limit fails. Connections that wait for the service do not count as
// saturation of the load generator.
func TestSlowServiceFails(t *testing.T) {
	t.Parallel()
	url := plainServices(t, func(http.ResponseWriter, *http.Request) bool { time.Sleep(900 * time.Millisecond); return false })
	r := smoke(t, "rampup", "--stages", "20", "--stage-seconds", "4", "--warmup-seconds", "0", "--timeout-seconds", "10", "--backend-url", url)
	v := r.verdict()
	require.NotContains(t, r.out.String(), "MAX_CONNECTIONS")
	if text := reasons(v); v.Verdict == verdict.Invalid && (strings.Contains(text, "because the load generator waited") || strings.Contains(text, "machine was full")) {
		t.Skip("other processes used all cores of this machine")
	}
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "the lowest load was not sustained: p95")
}

// For a service that sends 75 responses per second, the report states 50 at a load of 50, and 75 at a load of 150.
func TestRampupReportsTheRateOfTheService(t *testing.T) {
	t.Parallel()
	const perSecond = 75
	var mu sync.Mutex
	var next time.Time
	url := plainServices(t, func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		now := time.Now()
		if next.Before(now) {
			next = now
		}
		next = next.Add(time.Second / perSecond)
		at := next
		mu.Unlock()
		time.Sleep(time.Until(at))
		return false
	})
	r := smoke(t, "rampup", "--stages", "50,150", "--stage-seconds", "6", "--warmup-seconds", "0", "--timeout-seconds", "15", "--max-p95-ms", "0", "--backend-url", url)
	v := r.verdict()
	require.NotEqual(t, verdict.Fail, v.Verdict, r.out.String())
	rows := section(v, "Stages").Rows
	require.Len(t, rows, 2)
	for i, want := range []float64{50, perSecond} {
		var rate float64
		_, err := fmt.Sscan(rows[i][4], &rate)
		require.NoError(t, err)
		require.InEpsilon(t, want, rate, .1, r.out.String())
	}
	require.NotEqual(t, "good", rows[1][6], r.out.String())
	require.Contains(t, factOf(v, "breaking point"), "between 50 and 150 requests/s", r.out.String())
}
