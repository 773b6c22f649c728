//go:build e2e

package e2e

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// backend starts bin/backend on a free port and returns its URL.
func backend(t *testing.T, env ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	startBackend(t, nil, append(env, "LISTEN="+address)...)
	client := http.Client{Timeout: time.Second}
	await(t, "the backend is ready", func() bool {
		resp, err := client.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return "http://" + address
}

// backend starts one on the server's side of the wire.
func (w *wire) backend(t *testing.T, interval string) string {
	t.Helper()
	startBackend(t, []string{"ip", "netns", "exec", w.server}, "LISTEN="+serverAddress+":8080", "NOOP_INTERVAL="+interval)
	await(t, "the backend is ready", func() bool {
		text, err := exec.Command("ip", "netns", "exec", w.server, "ss", "-Hltn", "sport", "=", "8080").Output()
		return err == nil && len(text) > 0
	})
	return "http://" + serverAddress + ":8080"
}

func startBackend(t *testing.T, before []string, env ...string) {
	t.Helper()
	line := append(append([]string(nil), before...), filepath.Join(root, "bin", "backend"))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(append(os.Environ(), "LOG_LEVEL=error"), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}
