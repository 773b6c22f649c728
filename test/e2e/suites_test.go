//go:build e2e

package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// runSmoke runs the smoke profile of a suite against the target that soak starts. On a busy machine the generator may
// affect a figure, which causes a warning. A failure would be a bug.
func runSmoke(t *testing.T, name string) *verdict.Verdict {
	t.Helper()
	r := smoke(t, name)
	v := r.verdict()
	require.NotEqual(t, verdict.Fail, v.Verdict, r.out.String())
	require.FileExists(t, r.dir.Path("report.html"))
	r.requireNarrowReport()
	return v
}

func TestBurst(t *testing.T) {
	t.Parallel()
	v := runSmoke(t, "burst")
	rows := section(v, "Bursts").Rows
	require.Len(t, rows, 2)
	require.Equal(t, "100", rows[1][0])
	require.Equal(t, "good", rows[1][6], "the health check after the burst must succeed")
}

func TestUpload(t *testing.T) {
	t.Parallel()
	v := runSmoke(t, "upload")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, []string{"9 of 9 uploads arrived complete"}, v.Reasons)
}

func TestChangedUploadIsFound(t *testing.T) {
	t.Parallel()
	var uploads atomic.Int64
	url := plainServices(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && uploads.Add(1) == 5 {
			body, _ := io.ReadAll(r.Body)
			body[len(body)/2] ^= 1
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return false
	})
	v := smoke(t, "upload", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, reasons(v), "6 × 1 MB in parallel: 5 of 6 arrived complete (failure: wrong response)")
}

func TestThroughput(t *testing.T) {
	t.Parallel()
	v := runSmoke(t, "throughput")
	require.Len(t, section(v, "By endpoint").Rows, 8)
	require.Len(t, section(v, "By requests at a time").Rows, 3)
	require.Len(t, section(v, "By number of requests").Rows, 2)
	for _, row := range section(v, "By endpoint").Rows {
		require.Equal(t, "0", row[3], "no response of %s must be wrong", row[0])
	}
}

func TestCompareOneBackendWithACluster(t *testing.T) {
	t.Parallel()
	v := runSmoke(t, "cluster")
	rows := section(v, "Responses by server").Rows
	require.Len(t, rows, 4, "there must be one row for the single backend, and three for the cluster")
	for i, row := range rows[1:] {
		require.Equal(t, []string{"cluster", fmt.Sprintf("backend-%d", i+1)}, row[:2])
		require.Regexp(t, `^3[0-9]\.`, row[3], "each backend must send a third of the responses")
	}
	require.NotEmpty(t, factOf(v, "deploy"))
	require.NotEmpty(t, factOf(v, "winner"))
	require.Len(t, section(v, "Level by level").Rows, 4, "there must be one row per level")
	if runtime.NumCPU() > 1 {
		require.Len(t, section(v, "Busy cores").Rows, 2, "service and runners must have separate cores by default")
	}
}

func TestCompareNamesCrashedMember(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "cluster", "--profile", "smoke", "--levels", "1", "--rounds", "1", "--round-seconds", "4")
	var member int
	await(t, "the second backend of the cluster must start", func() bool {
		for _, pid := range processes(m) {
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err == nil && bytes.Contains(environ, []byte("SERVER_NAME=backend-2")) {
				member = pid
			}
		}
		return member != 0
	})
	await(t, "the runners must send requests", func() bool {
		text, err := os.ReadFile(r.dir.Path(results.ResourcesFile))
		return err == nil && bytes.Contains(text, []byte("backend_service_requests"))
	})
	require.NoError(t, syscall.Kill(member, syscall.SIGKILL))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "backend-2-cluster died")
}

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
