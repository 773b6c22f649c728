//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// backend starts bin/backend on a free port, and returns its URL.
func backend(t *testing.T, env ...string) string {
	t.Helper()
	log := startBackend(t, nil, append(env, "LISTEN=127.0.0.1:0")...)
	address := ""
	await(t, "the backend must listen", func() bool {
		text, err := os.ReadFile(log)
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(text)) {
			var entry struct{ Msg, Addr string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				address = entry.Addr
			}
		}
		return address != ""
	})
	return "http://" + address
}

// backend starts a backend on the server side of the wire. env has the variables for clients of the backend.
func (w *wire) backend(t *testing.T, interval string) (url string, env []string) {
	t.Helper()
	args := []string{"LISTEN=" + serverAddress + ":8080", "NOOP_INTERVAL=" + interval}
	scheme := "http"
	if w.secure {
		certs := certificates(t)
		scheme, args, env = "https", append(args, tlsVariables(certs)...), []string{"SSL_CERT_FILE=" + filepath.Join(certs, "ca.pem")}
	}
	startBackend(t, []string{"ip", "netns", "exec", w.server}, args...)
	await(t, "the backend must be ready", func() bool {
		text, err := exec.Command("ip", "netns", "exec", w.server, "ss", "-Hltn", "sport", "=", "8080").Output()
		return err == nil && len(text) > 0
	})
	return scheme + "://" + serverAddress + ":8080", env
}

// startBackend starts bin/backend, with wrapper before its command line, and returns its log file.
func startBackend(t *testing.T, wrapper []string, env ...string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "backend.log"))
	require.NoError(t, err)
	defer log.Close()
	line := append(append([]string(nil), wrapper...), filepath.Join(root, "bin", "backend"))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return log.Name()
}
