// Package promserver starts Prometheus servers for tests.
package promserver

import (
	"bytes"
	"context"
	"io"
	"net"
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

// Start starts a Prometheus server that scrapes target, HOST:PORT, as the job backend every second. nodes are
// node_exporters as NAME=HOST:PORT, which become instances of the job node. Start returns the address after the first
// scrape. Prometheus ends with the test.
func Start(t *testing.T, target string, nodes ...string) (listen string) {
	t.Helper()
	jobs := "{job_name: backend, scrape_interval: 1s, static_configs: [{targets: [" + target + "]}]}"
	for _, node := range nodes {
		name, nodeAddress, _ := strings.Cut(node, "=")
		jobs += ", {job_name: " + name + ", scrape_interval: 1s, static_configs: [{targets: [" + nodeAddress + "], labels: {job: node, instance: " + name + "}}]}"
	}
	listen = Run(t, "127.0.0.1", "scrape_configs: ["+jobs+"]")
	require.Eventually(t, func() bool { return hasScraped(listen) }, time.Minute, 50*time.Millisecond, "Prometheus must scrape %s", target)
	return listen
}

// Run starts a Prometheus server on a free port of a host, and returns the address when the server is ready. The server
// ends with the test.
func Run(t *testing.T, host, config string, args ...string) (listen string) {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		untested.SkipMissing(t, "prometheus is not installed; run `apt-get install prometheus`")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	_, port, err := net.SplitHostPort(address.Reserve(t))
	require.NoError(t, err)
	listen = net.JoinHostPort(host, port)
	ctx, stop := context.WithCancel(context.Background())
	args = append([]string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + listen,
		"--web.enable-remote-write-receiver"}, args...)
	var output bytes.Buffer
	p := exec.CommandContext(ctx, binary, args...)
	p.Stderr = &output
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		stop()
		_ = p.Wait() // an error, because stop kills the process
		if t.Failed() {
			t.Log(output.String())
		}
	})
	require.Eventually(t, func() bool { return isUp(listen) }, time.Minute, 50*time.Millisecond, "Prometheus must become ready")
	return listen
}

// isUp reports whether Prometheus is ready or requires a password.
func isUp(address string) bool {
	response, err := http.Get("http://" + address + "/-/ready")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK || response.StatusCode == http.StatusUnauthorized
}

func hasScraped(address string) bool {
	response, err := http.Get("http://" + address + "/api/v1/query?query=up")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return err == nil && strings.Contains(string(body), `"job":"backend"`)
}
