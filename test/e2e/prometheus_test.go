//go:build e2e

package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

// prometheusOf starts a real Prometheus that scrapes the backend at url.
func prometheusOf(t *testing.T, url string) (address string) {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		untested.Missing(t, "prometheus is not installed: apt-get install prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("scrape_configs: [{job_name: backend, scrape_interval: 1s, static_configs: [{targets: ["+strings.TrimPrefix(url, "http://")+"]}]}]"), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address = free.Addr().String()
	require.NoError(t, free.Close())
	ctx, stop := context.WithCancel(context.Background())
	p := exec.CommandContext(ctx, binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		stop()
		_ = p.Wait() // killed
	})
	await(t, "Prometheus has scraped the backend", func() bool {
		answer, err := http.Get("http://" + address + "/api/v1/query?query=process_resident_memory_bytes")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return err == nil && strings.Contains(string(body), `"job":"backend"`)
	})
	return address
}

func TestResourcesComeFromPrometheus(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1")
	address := prometheusOf(t, url)
	r := begin(t, []string{"PROMETHEUS_URL=http://me:secret@" + address}, "--backend-url", url, "--connections", "20", "--seconds", "15", "--noop-interval", "1")
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.NotZero(t, v.Resources.BackendRSSMax)
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Prometheus at http://me:xxxxx@"+address+" (it watches no host: the host is by soak itself)")
	require.NotContains(t, string(page), "secret")
}

func TestAPrometheusThatIsNotThereIsAWarning(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"PROMETHEUS_URL=http://127.0.0.1:1"}, "--connections", "20", "--seconds", "12", "--noop-interval", "1")
	v := r.judged()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, strings.Join(v.Warnings, "\n"), "the resources are those that soak sampled itself")
	require.NotZero(t, v.Resources.BackendRSSMax)
}
