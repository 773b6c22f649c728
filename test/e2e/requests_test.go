//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// reset ends the connection of a response with a TCP reset.
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

// Each failure is reported under its own name. A status code is not reported as an error code of k6, such as 1201
// (broken pipe). Each reset is reported, although Go's HTTP client would repeat a GET if a reused connection is reset.
func TestEachFailureIsReported(t *testing.T) {
	t.Parallel()
	faults := map[string]func(w http.ResponseWriter){
		"net-1220, connection reset": reset,
		"net-1050, timeout":          func(http.ResponseWriter) { time.Sleep(4 * time.Second) }, // twice the timeout of the client, whose timer may be late
		"wrong, wrong response":      func(w http.ResponseWriter) { fmt.Fprint(w, `{"result": -1}`) },
		"truncated, truncated response": func(w http.ResponseWriter) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"res"))
				_ = conn.Close()
			}
		},
		"status-101, status 101": func(w http.ResponseWriter) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "other")
			w.WriteHeader(http.StatusSwitchingProtocols)
		},
	}
	for _, status := range []int{201, 204, 310, 404, 503} {
		faults[fmt.Sprintf("status-%d, status %[1]d", status)] = func(w http.ResponseWriter) { w.WriteHeader(status) }
	}
	names := slices.Sorted(maps.Keys(faults))
	count := int64(len(names))
	var requests atomic.Int64
	r := smoke(t, "rampup", "--stages", "100", "--warmup-seconds", "0", "--backend-url", plainServices(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/default/") { // such as a health check of soak
			return false
		}
		n := requests.Add(1)
		if n%10 != 0 {
			return false
		}
		faults[names[(n/10-1)%count]](w) // each in turn
		return true
	}))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, "the run must fail, because 10 %% of the requests failed: %s", r.out.String())
	want := map[string]string{}
	for i, name := range names {
		want[name] = fmt.Sprint((requests.Load()/10 + count - 1 - int64(i)) / count)
	}
	require.Equal(t, want, failures(v), r.out.String())
	require.Regexp(t, `responses are correct: \d+ wrong, \d+ of them truncated`, reasons(v))
}

// While other processes use all cores, slow responses are not attributed to the service. These processes have a higher
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
