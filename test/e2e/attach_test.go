//go:build e2e

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// attachCommand returns the command that attaches to a run whose soak was killed.
func attachCommand(killedSoak *soakRun) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root, "bin", "soak"), "attach", "t", "--out", filepath.Dir(string(killedSoak.dir)))
	cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null") // so that soak does not search a cluster for the run
	return cmd
}

// attach runs `soak attach` for a run whose soak was killed, and returns the verdict and the output.
func attach(t *testing.T, killedSoak *soakRun) (v *verdict.Verdict, out string) {
	t.Helper()
	text, err := attachCommand(killedSoak).CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok { //nolint:errorlint // not wrapped
		require.NoError(t, err, string(text))
	}
	return readVerdict(t, killedSoak.dir), string(text)
}

// beginAndKill starts a soak with two runners, and kills the soak process. It returns the run and the ids of the
// runners, which continue.
func beginAndKill(t *testing.T, mark string) (killedSoak *soakRun, runners []int) {
	t.Helper()
	killedSoak = begin(t, []string{mark}, "--backend-url", backend(t, "NOOP_INTERVAL=1s"), "--connections", "20", "--seconds", "24", "--noop-interval", "1", "--min-coverage", "40", "--runners", "2")
	killedSoak.awaitStreams("20")
	require.NoError(t, killedSoak.cmd.Process.Kill())
	_ = killedSoak.cmd.Wait()
	await(t, "the target of the control group must end", func() bool { return len(processes(mark)) == 2 })
	return killedSoak, runnersOf(mark)
}

// readFolder returns the files of a folder, with the time of their last change.
func readFolder(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	files := map[string]time.Time{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		files[path] = info.ModTime()
		return err
	}))
	return files
}

// `soak attach` follows the runner that still runs, and replaces the one that ended early. A second attach finds no
// runner and changes no file.
func TestAttachFollowsAndReplacesRunners(t *testing.T) {
	t.Parallel()
	m := mark(t)
	killedSoak, runners := beginAndKill(t, m)
	require.Len(t, runners, 2)
	require.NoError(t, syscall.Kill(runners[0], syscall.SIGTERM))
	await(t, "the runner must end", func() bool { return len(runnersOf(m)) == 1 })
	v, text := attach(t, killedSoak)
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Equal(t, 1, strings.Count(text, "is still running"), text)
	require.Contains(t, text, "its clients continue for")
	require.Contains(t, text, "20/20 open", "the progress of the runners must be shown")
	require.Equal(t, []int{20, 20, 0}, []int{v.Connections.Opened, v.Connections.Completed, v.Connections.Unwatched}, text)
	require.Less(t, v.Watched.Share, 1.)
	require.Len(t, v.Runners, 3)
	requireNoProcess(t, m)

	files := readFolder(t, filepath.Dir(string(killedSoak.dir)))
	for id, want := range map[string]string{"t": "it has ended: `soak merge ", "unknown": "this machine has no run "} {
		cmd := attachCommand(killedSoak)
		cmd.Args[2] = id
		text, err := cmd.CombinedOutput()
		require.ErrorContains(t, err, "exit status 64", string(text))
		require.Contains(t, string(text), want)
	}
	require.Equal(t, files, readFolder(t, filepath.Dir(string(killedSoak.dir))))
}

func TestAttachRefusesARunWhoseBackendEndedWithSoak(t *testing.T) {
	t.Parallel()
	m := mark(t)
	killedSoak := begin(t, []string{m}, "--connections", "4", "--seconds", "60", "--noop-interval", "1")
	await(t, "the runner must run", func() bool { return len(runnersOf(m)) == 1 })
	require.NoError(t, killedSoak.cmd.Process.Kill())
	_ = killedSoak.cmd.Wait()
	requireNoProcess(t, m)
	text, err := attachCommand(killedSoak).CombinedOutput()
	require.ErrorContains(t, err, "exit status 64", string(text))
	require.Contains(t, string(text), "ended with soak, because soak started their target, had actions (--at), started only some of the runners (--runner), or ran another suite")
}
