//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/backend/services"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
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
