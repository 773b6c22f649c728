package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvalidProbeIsAUsageError(t *testing.T) {
	existing := filepath.Join(t.TempDir(), "existing.js")
	require.NoError(t, os.WriteFile(existing, nil, 0o600))
	for _, args := range [][]string{
		{},
		{"localhost:8080/events"},
		{"http://127.0.0.1:1/x", "--streams", "11"},
		{"http://127.0.0.1:1/x", "--seconds", "5"},
		{"http://127.0.0.1:1/x", "--header", "x"},
		{"http://127.0.0.1:1/x", "--publish-url", "http://127.0.0.1:1/y"},
		{"http://127.0.0.1:1/{tpoic}"},
		{"http://127.0.0.1:1/x", "--name", "no name"},
		{"http://127.0.0.1:1/x", "--out", existing},
	} {
		require.Equal(t, exitUsage, execute(append([]string{"probe"}, args...)), args)
	}
	require.Equal(t, 2, execute([]string{"probe", "http://127.0.0.1:1/x"}), "probe must exit with 2 if no server listens on the port")
}

func TestSecondsAcceptsDurations(t *testing.T) {
	require.Equal(t, 0, execute([]string{"plan", "--connections", "100", "--seconds", "10m", "--noop-interval", "500ms"}))
	require.Equal(t, exitUsage, execute([]string{"plan", "--seconds", "ten"}))
	require.Equal(t, exitUsage, execute([]string{"plan", "--seconds", "0s"}))
	for _, command := range []string{"probe", "init"} {
		t.Chdir(t.TempDir())
		require.Equal(t, 2, execute([]string{command, "http://127.0.0.1:1/x", "--seconds", "1m"}), "%s must accept --seconds 1m, and exit with 2 because no server listens on the port", command)
	}
}
