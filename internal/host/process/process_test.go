package process

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testTimeout = time.Minute

func start(t *testing.T, script string) (c *Process, log func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	c, err := Start(Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ(), Log: path, OrphanSignal: syscall.SIGKILL})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.Stop(ctx, syscall.SIGKILL, 0)
	})
	return c, func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
}

func awaitOutput(t *testing.T, log func() string, word string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(log(), word) }, testTimeout, 2*time.Millisecond)
}

func awaitEnd(t *testing.T, c *Process) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(testTimeout):
		require.Fail(t, "the process did not end")
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for script, code := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": -1, "kill -KILL $$": -1} {
		c, _ := start(t, script)
		awaitEnd(t, c)
		require.Equal(t, code, c.ExitCode(), script)
		require.Equal(t, code == 0, c.Err() == nil, script)
		c.Signal(syscall.SIGTERM) // has no effect
	}
}

func TestOutputIsAppendedToTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		c, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", "echo out; echo $WORD >&2"}, Env: []string{"WORD=err"}, Log: path})
		require.NoError(t, err)
		awaitEnd(t, c)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "out\nerr\nout\nerr\n", string(text))
}

func TestStartErrorNamesTheProcess(t *testing.T) {
	t.Parallel()
	_, err := Start(Spec{Name: "nginx", Path: "/none/such", Log: filepath.Join(t.TempDir(), "log")})
	require.ErrorContains(t, err, "start nginx: ")
	_, err = Start(Spec{Name: "nginx", Path: "/bin/true", Log: "/none/such/log"})
	require.ErrorContains(t, err, "start nginx: ")
}

func TestStopSendsTheSignalFirst(t *testing.T) {
	t.Parallel()
	c, log := start(t, `trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done`)
	awaitOutput(t, log, "up")
	group, err := syscall.Getpgid(c.PID())
	require.NoError(t, err)
	require.Equal(t, c.PID(), group, "a Ctrl-C at the terminal must not reach the process")
	c.Stop(t.Context(), syscall.SIGTERM, testTimeout)
	require.Equal(t, 3, c.ExitCode())
	require.Contains(t, log(), "bye")
}

func TestStopKillsAGroupThatIgnoresTheSignal(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(p *Process){
		"after the grace period": func(p *Process) { p.Stop(context.Background(), syscall.SIGTERM, 20*time.Millisecond) },
		"when ctx ends": func(p *Process) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			p.Stop(ctx, syscall.SIGTERM, time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, log := start(t, `trap '' TERM; (trap '' TERM; while :; do sleep 0.01; done) & echo "grandchild $! up"; while :; do sleep 0.01; done`)
			awaitOutput(t, log, "up")
			grandchild, err := strconv.Atoi(strings.Fields(log())[1])
			require.NoError(t, err)
			stop(c)
			require.Equal(t, -1, c.ExitCode())
			require.ErrorContains(t, c.Err(), "killed")
			require.Eventually(t, func() bool { return hasEnded(grandchild) }, testTimeout, 2*time.Millisecond)
		})
	}
}

func TestStopGroupEndsChildrenOfAShell(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the foreground":       `sh -c 'echo "child $$ up"; exec sleep 60'; true`,
		"in the background":       `sh -c 'echo "child $$ up"; exec sleep 60' & sleep .1`,
		"that ignores the signal": `sh -c 'trap "" TERM; echo "child $$ up"; while :; do sleep .01; done'; true`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, log := start(t, script)
			awaitOutput(t, log, "up")
			child, err := strconv.Atoi(strings.Fields(log())[1])
			require.NoError(t, err)
			if name == "in the background" {
				awaitEnd(t, c)
				require.True(t, c.IsGroupRunning())
			}
			c.StopGroup(t.Context(), syscall.SIGTERM, 300*time.Millisecond)
			awaitEnd(t, c)
			require.Eventually(t, func() bool { return hasEnded(child) }, testTimeout, 2*time.Millisecond)
		})
	}
}

// hasEnded reports whether a process has ended or is a zombie.
func hasEnded(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}
