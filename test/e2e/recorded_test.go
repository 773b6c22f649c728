//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/backend/services"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// The services of these tests record their behavior. The verdict and its figures must match the records.

// delayedService returns a service that delays each response by a constant time.
func delayedService(t *testing.T, delay time.Duration) string {
	t.Helper()
	return plainServices(t, func(http.ResponseWriter, *http.Request) bool { time.Sleep(delay); return false })
}

// machineWasBusy reports whether other processes used all cores during a run. Slow responses are then inconclusive.
func machineWasBusy(v *verdict.Verdict) bool {
	text := reasons(v)
	return strings.Contains(text, "by waits of the load generator") || strings.Contains(text, "machine was full")
}

// A service whose responses are all slower than the limit fails. Connections that wait for it do not count as
// saturation of the load generator.
func TestSlowServiceFails(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{900 * time.Millisecond, 3 * time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			r := smoke(t, "rampup", "--stages", "20", "--stage-seconds", "6", "--warmup-seconds", "0", "--timeout-seconds", "10", "--backend-url", delayedService(t, delay))
			v := r.verdict()
			require.NotContains(t, r.out.String(), "MAX_CONNECTIONS")
			if v.Verdict == verdict.Invalid && machineWasBusy(v) {
				t.Skip("other processes used all cores of this machine")
			}
			require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), "the lowest load was not sustained: p95")
		})
	}
}

// For a service that sends 150 responses per second, the report states 100 at a load of 100, and 150 at a load of 300.
func TestRampupReportsTheRateOfTheService(t *testing.T) {
	t.Parallel()
	const perSecond = 150
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
	r := smoke(t, "rampup", "--stages", "100,300", "--stage-seconds", "6", "--warmup-seconds", "0", "--timeout-seconds", "15", "--max-p95-ms", "0", "--backend-url", url)
	v := r.verdict()
	require.NotEqual(t, verdict.Fail, v.Verdict, r.out.String())
	rows := section(v, "Stages").Rows
	require.Len(t, rows, 2)
	for i, want := range []float64{100, perSecond} {
		var rate float64
		_, err := fmt.Sscan(rows[i][4], &rate)
		require.NoError(t, err)
		require.InEpsilon(t, want, rate, .1, r.out.String())
	}
	require.NotEqual(t, "good", rows[1][6], r.out.String())
	require.Contains(t, factOf(v, "breaking point"), "between 100 and 300 requests/s", r.out.String())
}

// One truncated response in a hundred fails a run.
func TestTruncatedResponsesFail(t *testing.T) {
	t.Parallel()
	handler, truncated := everyNth(100, func(w http.ResponseWriter) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"res"))
			_ = conn.Close()
		}
	})
	r := smoke(t, "throughput", "--volumes", "300", "--levels", "5", "--warmup-seconds", "0", "--backend-url", plainServices(t, handler))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Positive(t, truncated.Load())
	require.Contains(t, reasons(v), fmt.Sprintf("responses are correct: %s wrong, %[1]s of them truncated", format.Thousands(truncated.Load())))
}

// serveTwice starts a service that sends a second, wrong response 3 ms after each response. sent is the number of
// second responses.
func serveTwice(t *testing.T) (url string, sent *atomic.Int64) {
	t.Helper()
	sent, h := new(atomic.Int64), services.New("")
	return "http://" + sockets.Serve(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if _, err := fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", w.Code, w.Body.Len(), w.Body); err != nil {
				return
			}
			if strings.HasPrefix(req.URL.Path, "/default/") {
				time.Sleep(3 * time.Millisecond)
				if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"result\": 0}")); err == nil {
					sent.Add(1)
				}
			}
		}
	}), sent
}

func TestUnrequestedResponsesFail(t *testing.T) {
	t.Parallel()
	url, sent := serveTwice(t)
	r := smoke(t, "rampup", "--stages", "20", "--warmup-seconds", "0", "--backend-url", url)
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "responses are correct: ")
	require.Greater(t, sent.Load(), int64(20))
}
