// Package watcher starts a real Prometheus for tests that query one.
package watcher

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/untested"
)

// Start starts a Prometheus that scrapes target, HOST:PORT, as the job backend every second. It returns the address
// after the first scrape, which may take longer than a short run on a busy machine. It ends with the test. nodes are
// NAME=HOST:PORT of node_exporters, which become instances of the job node.
func Start(t *testing.T, target string, nodes ...string) (at string) {
	t.Helper()
	scraped := "{job_name: backend, scrape_interval: 1s, static_configs: [{targets: [" + target + "]}]}"
	for _, node := range nodes {
		name, nodeAt, _ := strings.Cut(node, "=")
		scraped += ", {job_name: " + name + ", scrape_interval: 1s, static_configs: [{targets: [" + nodeAt + "], labels: {job: node, instance: " + name + "}}]}"
	}
	at = Run(t, "scrape_configs: ["+scraped+"]")
	require.Eventually(t, func() bool { return hasScraped(at) }, time.Minute, 50*time.Millisecond, "Prometheus has not scraped %s", target)
	return at
}

// Run starts a Prometheus with a configuration at a free port, and returns its address when it is ready. It ends with
// the test.
func Run(t *testing.T, config string, args ...string) (at string) {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		untested.SkipMissing(t, "prometheus is not installed: apt-get install prometheus")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	at = address.Reserve(t)
	ctx, stop := context.WithCancel(context.Background())
	args = append([]string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + at,
		"--web.enable-remote-write-receiver"}, args...)
	var output bytes.Buffer
	p := exec.CommandContext(ctx, binary, args...)
	p.Stderr = &output
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		stop()
		_ = p.Wait() // killed
		if t.Failed() {
			t.Log(output.String())
		}
	})
	require.Eventually(t, func() bool { return isUp(at) }, time.Minute, 50*time.Millisecond, "Prometheus does not answer")
	return at
}

// isUp reports whether Prometheus is ready or requires a password.
func isUp(address string) bool {
	answer, err := http.Get("http://" + address + "/-/ready")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusUnauthorized
}

func hasScraped(address string) bool {
	answer, err := http.Get("http://" + address + "/api/v1/query?query=up")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return err == nil && strings.Contains(string(body), `"job":"backend"`)
}
