// Package reverse starts nginx as a reverse proxy for tests.
package reverse

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/test/untested"
)

// Program returns the path of nginx. It calls untested.SkipMissing if nginx is not installed.
func Program(t testing.TB) string {
	t.Helper()
	path, err := process.Find("nginx")
	if err != nil {
		untested.SkipMissing(t, "nginx is not installed; run `apt-get install nginx-light`")
	}
	return path
}

// Start starts nginx with a configuration, and waits until it listens. nginx stores its files in dir, and stops when
// the test ends.
func Start(t testing.TB, dir, configuration, network, address string) {
	t.Helper()
	Program(t)
	stop, err := Run(t.Context(), dir, configuration, network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if text, err := os.ReadFile(logPath(dir)); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
	})
}

// Run is like Start, but nginx runs until stop is called, and a failure or a missing nginx is an error.
func Run(ctx context.Context, dir, configuration, network, address string) (stop func(), err error) {
	config, log := filepath.Join(dir, "nginx.conf"), logPath(dir)
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	path, err := process.Find("nginx")
	if err != nil {
		return nil, err
	}
	p, err := process.Start(process.Spec{
		Name: "nginx", Path: path, Args: []string{"-e", log, "-c", config}, Log: log, Env: os.Environ(), OrphanSignal: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	stop = func() { p.Stop(context.Background(), syscall.SIGTERM, 5*time.Second) }
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if conn, err := net.Dial(network, address); err == nil {
			return stop, conn.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			stop()
			return nil, fmt.Errorf("start nginx: it does not listen on %s; see %s", address, log)
		}
	}
}

func logPath(dir string) string { return filepath.Join(dir, "nginx.log") }
