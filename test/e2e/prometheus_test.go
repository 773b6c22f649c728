//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/promserver"
)

func TestResourcesFromPrometheus(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1")
	address := promserver.Start(t, strings.TrimPrefix(url, "http://"))
	r := begin(t, []string{"PROMETHEUS_URL=http://me:secret@" + address}, "--backend-url", url, "--connections", "20", "--seconds", "10", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.NotZero(t, v.Resources.BackendRSSMax)
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Prometheus at http://me:xxxxx@"+address+" (it has no metrics of the host, so soak sampled the host)")
	require.NotContains(t, string(page), "secret")
}

func TestUnreachablePrometheusWarns(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"PROMETHEUS_URL=http://127.0.0.1:1", "K6_PROMETHEUS_RW_SERVER_URL=http://127.0.0.1:1/api/v1/write"}, "--connections", "20", "--seconds", "10", "--noop-interval", "1", "--runners", "2")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	warnings := strings.Join(v.Warnings, "\n")
	require.Contains(t, warnings, "soak's own samples are used")
	require.Regexp(t, `\d+ remote writes of 2 runners to Prometheus failed \(the last: .*connection refused`, warnings)
	require.NotZero(t, v.Resources.BackendRSSMax)
}
