//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/backend/services"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

// smoke starts a suite with its smoke profile.
func smoke(t *testing.T, name string, args ...string) *soakRun {
	t.Helper()
	return begin(t, nil, append([]string{name, "--profile", "smoke"}, args...)...)
}

// section returns the table of v that has the given title, or an empty table.
func section(v *verdict.Verdict, title string) verdict.Table {
	for _, table := range v.Tables {
		if table.Title == title {
			return table
		}
	}
	return verdict.Table{}
}

// factOf returns the value of a fact in a verdict, or "" if the verdict lacks the fact.
func factOf(v *verdict.Verdict, name string) string {
	for _, f := range v.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// plainServices starts the services of the backend, and returns their URL. handler, unless nil, may respond to requests
// instead of the services.
func plainServices(t *testing.T, handler func(w http.ResponseWriter, r *http.Request) (responded bool)) string {
	t.Helper()
	h := services.New("")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler == nil || !handler(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestRampup(t *testing.T) {
	t.Parallel()
	r := smoke(t, "rampup")
	v := r.verdict()
	require.NotEqual(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, "rampup", v.Suite.Name)
	rows := section(v, "Stages").Rows
	require.Len(t, rows, 3)
	for i, rate := range []int{20, 50, 100} {
		require.Equal(t, fmt.Sprintf("%d/s", rate), rows[i][0])
		require.Equal(t, "0", rows[i][2], "no request may fail")
	}
	require.NotEmpty(t, section(v, "Recommended maximum loads").Rows)
	require.Len(t, section(v, "Processes").Rows, 3)
	r.requireNarrowReport()
	b, err := os.ReadFile(r.dir.Path(results.VerdictFile))
	require.NoError(t, err)
	require.NotContains(t, string(b), `"messages"`, "the verdict of a suite of requests must have no messages")
}

// The suite finds the rate above which a service refuses requests.
func TestRampupFindsTheBreakingPoint(t *testing.T) {
	t.Parallel()
	const capacity = 60 // per second
	var mu sync.Mutex
	var recent []time.Time
	url := plainServices(t, func(w http.ResponseWriter, _ *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		for len(recent) > 0 && now.Sub(recent[0]) > time.Second {
			recent = recent[1:]
		}
		if len(recent) >= capacity {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		recent = append(recent, now)
		return false
	})
	r := smoke(t, "rampup", "--backend-url", url, "--stages", "20,150", "--stage-seconds", "4", "--warmup-seconds", "0", "--search", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Regexp(t, `^between \d+ and \d+ requests/s`, factOf(v, "breaking point"))
	var from, to float64
	_, err := fmt.Sscanf(factOf(v, "breaking point"), "between %f and %f", &from, &to)
	require.NoError(t, err)
	require.GreaterOrEqual(t, from, 20.)
	require.Less(t, to, 150., "the search must narrow the range")
	require.Equal(t, []string{"status-503", "status 503"}, section(v, "Errors").Rows[0][:2])
	require.DirExists(t, r.dir.Path("round-02"))
	second, _, err := r.dir.Judge()
	require.NoError(t, err)
	require.Equal(t, v.Facts, second.Facts, "judging the files again must give the same facts")
}

func TestInterruptedSuiteIsInvalid(t *testing.T) {
	t.Parallel()
	r := smoke(t, "rampup", "--stages", "20", "--stage-seconds", "60")
	await(t, "the runner must write its first shard", func() bool {
		shards, err := filepath.Glob(r.dir.Path("shards/runner-*.json.gz"))
		return err == nil && len(shards) == 1
	})
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGINT))
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, reasons(v), "stopped by a signal")
}

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

// fullFrom returns the lowest load at which a resource was full, as a cell of the report. "–" means that the resource
// was never full. If the report does not list the resource, fullFrom returns "no such row".
func fullFrom(v *verdict.Verdict, resource string) string {
	for _, row := range section(v, "Resource usage").Rows {
		if row[0] == resource {
			return row[3]
		}
	}
	return "no such row"
}

// cpuGroup creates a Linux control group with 1 ms of CPU per 50 ms, and returns the file to which processes are added.
func cpuGroup(t *testing.T) string {
	t.Helper()
	folder, limit := "/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "1000"}
	if _, err := os.Stat(folder); err != nil {
		folder, limit = "/sys/fs/cgroup", map[string]string{"cpu.max": "1000 50000"}
	}
	group, err := os.MkdirTemp(folder, "soak-e2e-")
	if err != nil {
		untested.Skip(t, "this user cannot create control groups")
	}
	t.Cleanup(func() { require.NoError(t, os.Remove(group)) })
	for name, text := range limit {
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o600); err != nil {
			untested.Skip(t, "control groups do not limit CPU here: "+err.Error())
		}
	}
	return filepath.Join(group, "cgroup.procs")
}

// A backend with 20 ms of CPU per second cannot serve 1000 requests per second. The test has no lower load, because a
// lower load might also fail on a busy machine.
func TestControlGroupLimitBreaksAService(t *testing.T) {
	t.Parallel()
	group, m := cpuGroup(t), mark(t)
	r := begin(t, []string{m}, "rampup", "--profile", "smoke", "--stages", "1000", "--stage-seconds", "4", "--warmup-seconds", "3")
	await(t, "the backend must start", func() bool {
		for _, pid := range processes(m) {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && string(name) == "backend\n" {
				return os.WriteFile(group, []byte(fmt.Sprint(pid)), 0o600) == nil
			}
		}
		return false
	})
	v := r.verdict()
	require.Equal(t, "1,000/s", fullFrom(v, "CPU limit of the service"), r.out.String())
	require.Contains(t, factOf(v, "bottleneck"), "CPU limit of the service", r.out.String())
}
