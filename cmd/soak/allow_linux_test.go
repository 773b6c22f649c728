package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/terminal"
)

// The soak.yaml of a third-party folder must not run commands without permission.
func TestWorkingDirectoryCommandsNeedPermission(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("soak.yaml", []byte("connections: 1\nat:\n  - \"0s a: touch ran\\e[2K\"\n"), 0o600))
	run := func(in io.Reader, args ...string) (output string, err error) {
		t.Helper()
		// An invalid value of --on ends the command after the permission check.
		output, _, err = soakWithInput(t, in, append(args, "--on", "moon")...)
		return output, err
	}
	for _, args := range [][]string{{"run"}, {"run", "storm"}, {"run", "churn"}, {"run", "--allow-actions=false"}} {
		output, err := run(strings.NewReader("y\n"), args...)
		require.ErrorContains(t, err, "no terminal to confirm them; pass --allow-actions to allow them", args)
		require.Contains(t, output, `"0s a: touch ran\x1b[2K"`)
	}
	for _, args := range [][]string{{"run", "--allow-actions"}, {"run", "--at", "0s b: true"}, {"run", "--config", "soak.yaml"}} {
		output, err := run(nil, args...)
		require.ErrorContains(t, err, `--on must be local or k8s, got "moon"`, args)
		require.Empty(t, output)
	}
	for answer, want := range map[string]string{"y\n": `--on must be local or k8s, got "moon"`, "\n": "were declined", "n\n": "were declined"} {
		terminalFile, programFile := terminal.Open(t)
		_, err := terminalFile.WriteString(answer)
		require.NoError(t, err)
		output, err := run(programFile, "run")
		require.ErrorContains(t, err, want)
		require.Contains(t, output, "Run them? [y/N] ")
	}
	require.NoError(t, os.WriteFile("soak.yaml", []byte("at-env: all\n"), 0o600))
	output, err := run(nil, "run")
	require.ErrorContains(t, err, `--on must be local or k8s, got "moon"`)
	require.Empty(t, output, "without commands there is nothing to allow")
	require.NoError(t, os.WriteFile("soak.yaml", []byte("allow-actions: true\n"), 0o600))
	_, err = run(nil, "run")
	require.ErrorContains(t, err, "allow-actions must be a command-line flag, because a file cannot allow its own commands; remove it from the file")
	require.NoFileExists(t, "ran")
}
