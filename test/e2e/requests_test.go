//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// everyNth returns a handler that replaces each nth response, and the number of replacements.
func everyNth(n int64, replacement func(w http.ResponseWriter)) (handler func(http.ResponseWriter, *http.Request) bool, count *atomic.Int64) {
	var requests, replacements atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/default/") || requests.Add(1)%n != 0 { // excludes the health checks of soak
			return false
		}
		replacements.Add(1)
		replacement(w)
		return true
	}, &replacements
}

// reset ends the connection of a response by RST.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if secure, ok := conn.(*tls.Conn); ok {
			conn = secure.NetConn()
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// failures returns the numbers of failed requests in the table Errors, by code and name.
func failures(v *verdict.Verdict) map[string]string {
	out := map[string]string{}
	for _, row := range section(v, "Errors").Rows {
		out[row[0]+", "+row[1]] = row[2]
	}
	return out
}

// Go's HTTP client repeats a GET if a reused connection is reset. Each reset must still be reported as a failed
// request.
func TestEachResetIsReported(t *testing.T) {
	t.Parallel()
	handler, resets := everyNth(20, reset)
	r := smoke(t, "burst", "--bursts", "200", "--backend-url", plainServices(t, handler))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Greater(t, resets.Load(), int64(5))
	require.Equal(t, map[string]string{"net-1220, connection reset": format.Thousands(resets.Load())}, failures(v), r.out.String())
}

// Status codes are reported as such, not as error codes of k6, such as 1201 (broken pipe).
func TestStatusesAreNotNetworkErrors(t *testing.T) {
	t.Parallel()
	statuses := []int{101, 201, 204, 310, 311, 404, 503}
	count := int64(len(statuses))
	var responses atomic.Int64
	handler, _ := everyNth(10, func(w http.ResponseWriter) {
		status := statuses[(responses.Add(1)-1)%count] // each status in turn
		if status == http.StatusSwitchingProtocols {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "other")
		}
		w.WriteHeader(status)
	})
	r := smoke(t, "rampup", "--stages", "100", "--warmup-seconds", "0", "--backend-url", plainServices(t, handler))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, "10 %% failed with responses of the service: %s", r.out.String())
	require.Greater(t, responses.Load(), count)
	want := map[string]string{}
	for i, status := range statuses {
		want[fmt.Sprintf("status-%d, status %d", status, status)] = format.Thousands((responses.Load() + count - 1 - int64(i)) / count)
	}
	require.Equal(t, want, failures(v), r.out.String())
}

// A service whose responses sometimes exceed the timeout fails, unless this machine was saturated.
func TestStalledServiceFails(t *testing.T) {
	t.Parallel()
	handler, stalls := everyNth(50, func(http.ResponseWriter) { time.Sleep(4 * time.Second) }) // twice the timeout of the client, whose timer may be late
	r := smoke(t, "rampup", "--warmup-seconds", "0", "--backend-url", plainServices(t, handler))
	v := r.verdict()
	require.NotEqual(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, map[string]string{"net-1050, timeout": fmt.Sprint(stalls.Load())}, failures(v), r.out.String())
	if v.Verdict == verdict.Invalid { // other programs used all cores
		require.True(t, machineWasBusy(v), r.out.String())
		return
	}
	require.Contains(t, reasons(v), "the lowest load was not sustained: ")
}

// While other processes use all cores, slow responses are not attributed to the service. The loops have a higher
// priority if possible, because otherwise the runners may still reach 200 requests per second.
func TestSaturatedGeneratorExplainsSlowness(t *testing.T) {
	var requests atomic.Int64
	url := plainServices(t, func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false })
	r := smoke(t, "rampup", "--stages", "200", "--stage-seconds", "6", "--warmup-seconds", "0", "--max-p95-ms", "5", "--backend-url", url)
	await(t, "the service must receive requests", func() bool { return requests.Load() > 100 })
	busy := exec.Command("nice", "-n", "-10", "sh", "-c", "for i in $(seq 30); do (while :; do :; done) & done; wait")
	busy.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, busy.Start())
	time.Sleep(5 * time.Second) // the fault
	require.NoError(t, syscall.Kill(-busy.Process.Pid, syscall.SIGKILL))
	_ = busy.Wait()
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "at the lowest load the load generator was saturated: ")
}
