//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/terminal"
	"github.com/sse-soak/sse-soak/test/untested"
)

// hangUp sends SIGHUP twice, because the kernel and the shell may both send it. The second signal must not kill soak.
func (r *soakRun) hangUp() {
	r.t.Helper()
	for range 2 {
		require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGHUP))
	}
}

// soak writes a verdict even if its terminal is closed and all writes of the progress line fail.
func TestClosedTerminalLeavesAVerdict(t *testing.T) {
	untested.RequireHangups(t)
	t.Parallel()
	m := mark(t)
	window, program := terminal.Open(t)
	r := prepare(t, t.TempDir(), nil, []string{m}, "--connections", "20", "--seconds", "60", "--noop-interval", "1")
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = program, program, program
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.start()
	require.NoError(t, program.Close())
	await(t, "the runner must run", func() bool { return len(runnersOf(m)) == 1 })
	buffer := make([]byte, 1<<10)
	_, err := window.Read(buffer)
	require.NoError(t, err)
	require.NoError(t, window.Close())
	r.hangUp()
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, reasons(v), "stopped by a signal")
	require.FileExists(t, r.dir.Path(results.PageFile))
	requireNoProcess(t, m)
}

// Neither a closed output, as with `soak run | head -1`, nor a closed terminal ends a soak under nohup.
func TestNohupSurvivesClosedOutputAndTerminal(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	r := prepare(t, t.TempDir(), []string{"nohup"}, nil, "--connections", "20", "--seconds", "9", "--noop-interval", "1")
	r.cmd.Stdout, r.cmd.Stderr = write, write
	r.start()
	require.NoError(t, write.Close())
	_, err = read.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, read.Close())
	r.hangUp()
	require.Equal(t, verdict.Pass, r.verdict().Verdict)
}

// A soak removes the folder of sockets that a killed soak left behind.
func TestNextSoakCleansUp(t *testing.T) {
	t.Parallel()
	m, tmp := mark(t), t.TempDir()
	env := []string{m, "TMPDIR=" + tmp}
	folders := func() []string {
		all, err := filepath.Glob(filepath.Join(tmp, "soak-*"))
		require.NoError(t, err)
		return all
	}
	killedSoak := begin(t, env, "--connections", "20", "--seconds", "60", "--noop-interval", "1")
	await(t, "the runner must run", func() bool { return len(runnersOf(m)) == 1 })
	require.NoError(t, killedSoak.cmd.Process.Kill())
	_ = killedSoak.cmd.Wait()
	requireNoProcess(t, m)
	require.Len(t, folders(), 1)
	nextSoak := begin(t, env, "--connections", "10", "--seconds", "8", "--noop-interval", "1")
	require.Equal(t, verdict.Pass, nextSoak.verdict().Verdict, nextSoak.out.String())
	require.Empty(t, folders())
}
