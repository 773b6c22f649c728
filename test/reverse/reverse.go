// Package reverse starts a real nginx, a reverse proxy, for tests.
package reverse

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/test/untested"
)

// Program returns the path of nginx. It skips the test if nginx is not installed.
func Program(t testing.TB) string {
	t.Helper()
	path, err := process.Find("nginx")
	if err != nil {
		untested.SkipMissing(t, "nginx is not installed: apt-get install nginx-light")
	}
	return path
}

// Start runs nginx with a configuration until the test ends, and returns when it listens. dir gets its files.
func Start(t testing.TB, dir, configuration, network, address string) {
	t.Helper()
	config, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "nginx.log")
	require.NoError(t, os.WriteFile(config, []byte(configuration), 0o600))
	p, err := process.Start(process.Spec{
		Name: "nginx", Path: Program(t), Args: []string{"-e", log, "-c", config}, Log: log, Env: os.Environ(), Orphan: syscall.SIGTERM,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Stop(context.Background(), syscall.SIGTERM, 5*time.Second)
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial(network, address)
		return err == nil && conn.Close() == nil
	}, time.Minute, 10*time.Millisecond, "nginx does not listen")
}
