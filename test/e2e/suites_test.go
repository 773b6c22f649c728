//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

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
