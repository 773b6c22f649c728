package run

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// An action runs on the machine of soak, under every driver.
func TestDriversRunActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command string // $GO lets the runners continue to their end
		want          verdict.Outcome
		code          int
		wantText      string // in the reasons
	}{
		{"success", `echo "$SOAK_TESTID at $SOAK_TARGET in $SOAK_DIR"; (sleep .3; touch $GO) &`, verdict.Pass, 0, ""},
		{"failure", `(sleep .3; touch $GO) & echo no route >&2; exit 3`, verdict.Invalid, 3, "the action deploy ((sleep .3; touch $GO) & echo no route >&2; exit 3, at 200 ms) failed: exit code 3; last line of its output: no route"},
		{"no end", `echo $$; touch $GO; sleep 60; true`, verdict.Invalid, -1, "it was stopped when the run ended"},
	} {
		for name, drive := range drivers {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "")
				r.config.At = []string{"200ms deploy: " + strings.ReplaceAll(c.command, "$GO", filepath.Join(r.folder, "go"))}
				outcome, record, err := drive(t, r)
				require.NoError(t, err)
				v := r.verdict(t)
				require.Equal(t, c.want, outcome, "%v", v.Reasons)
				require.NotEmpty(t, v.Actions)
				a := v.Actions[0]
				assert.Equal(t, c.code, a.ExitCode)
				assert.Equal(t, a.ActionResult, record.Actions[0])
				assert.Less(t, a.StartedUnix, a.EndedUnix)
				if c.want == verdict.Pass {
					dir, err := filepath.Abs(filepath.Join(r.config.Out, "t"))
					require.NoError(t, err)
					assert.Equal(t, "t at "+r.service.URL+" in "+dir, a.Output)
					return
				}
				assert.Contains(t, strings.ReplaceAll(strings.Join(v.Reasons, "\n"), filepath.Join(r.folder, "go"), "$GO"), c.wantText)
				if pid, err := strconv.Atoi(a.Output); err == nil {
					assert.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "a process of the action still runs")
				}
			})
		}
	}
}

func TestCtrlCEndsActions(t *testing.T) {
	t.Parallel()
	r := newRig(t, holds)
	r.config.At = []string{"0s long: echo started; sleep 60; true", "10s later: true"}
	var disturbance sync.WaitGroup
	disturbance.Go(func() {
		r.awaitRunners(t)
		assert.Eventually(t, func() bool {
			text, _ := os.ReadFile(filepath.Join(r.config.Out, "t", "action-long.log"))
			return len(text) > 0
		}, time.Minute, time.Millisecond)
		r.stop()
	})
	start := time.Now()
	outcome, record, err := drivers["local"](t, r)
	disturbance.Wait()
	require.NoError(t, err)
	require.Less(t, time.Since(start), 30*time.Second)
	require.Equal(t, verdict.Invalid, outcome)
	require.Equal(t, []string{"it was stopped when the run ended", "it did not start, because the run ended first"},
		[]string{record.Actions[0].Problem, record.Actions[1].Problem})
	require.False(t, record.Actions[1].Started())
}

func TestBackgroundProcessesOfAnActionEndWithTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.At = []string{"0s new: sleep 60 & echo $!; (sleep .3; touch " + filepath.Join(r.folder, "go") + ") &"}
	outcome, record, err := drivers["local"](t, r)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome, "%v", r.verdict(t).Reasons)
	require.Less(t, record.Actions[0].Duration(), 10*time.Second, "the command itself ended at once")
	pid, err := strconv.Atoi(record.Actions[0].Output)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", record.Actions[0].Output, "stat"))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, time.Millisecond, "process %d still runs", pid)
}

// An action that prints its request, as curl -v does, or its environment leaves no secret in the folder of the run.
func TestActionOutputHasNoSecrets(t *testing.T) {
	t.Setenv("SUBSCRIBE_TOKEN", "to/read-1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d")
	t.Setenv("LC_ALL", "C")
	r := newRig(t, "")
	var stdout bytes.Buffer
	r.config.Stdout = &stdout
	r.config.AtEnv = "AWS_SECRET_ACCESS_KEY,NOT_SET"
	r.config.At = []string{"0s env: env; echo token=to%2Fread-1, aa$AWS_SECRET_ACCESS_KEY; : curl -H 'Authorization: Bearer ATsekret7' -u a:0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d; (sleep .3; touch " + filepath.Join(r.folder, "go") + ") &"}
	outcome, record, err := drivers["local"](t, r)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)
	dir := filepath.Join(r.config.Out, "t")
	info, err := os.Stat(filepath.Join(dir, "action-env.log"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	log := readFile(t, filepath.Join(dir, "action-env.log"))
	require.Equal(t, log, record.Actions[0].Output+"\n")
	require.Contains(t, log, "token=[redacted], aa[redacted]\n")
	require.Contains(t, record.Actions[0].Command, ": curl -H 'Authorization: [redacted]' -u a:[redacted];")
	var names []string
	for line := range strings.Lines(log) {
		if name, _, isVariable := strings.Cut(line, "="); isVariable && name != "token" {
			names = append(names, name)
		}
	}
	require.Subset(t, append([]string{"AWS_SECRET_ACCESS_KEY", "SOAK_TESTID", "SOAK_DIR", "SOAK_TARGET", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD"}, defaultVariables...), names)
	require.Subset(t, names, []string{"AWS_SECRET_ACCESS_KEY", "SOAK_TARGET", "PATH", "LC_ALL"})
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{"to/read-1", "to%2Fread-1", "0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d", "ATsekret7"} {
			assert.NotContains(t, string(text), secret, path)
		}
		return err
	}))
	require.Contains(t, stdout.String(), "Authorization: [redacted]")

	s := newSession(Config{Local: plan.Local{AtEnv: plan.AllVariables}})
	require.Equal(t, os.Environ(), s.actionVariables(os.Environ()))
}

// logOf calls write for the log of an action, and returns the content and the tail of the log.
func logOf(t *testing.T, write func(raw *os.File)) (log, tail string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, err := openActionLog(path, secret.Environment([]string{"A_TOKEN=0123456789abcdef"}))
	require.NoError(t, err)
	write(l.raw)
	tail = l.tail()
	require.NoError(t, l.close())
	text := readFile(t, path)
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return text, tail
}

func TestActionOutputIsBounded(t *testing.T) {
	t.Parallel()
	written := strings.Repeat("é", maxOutput) + "x\n"
	log, text := logOf(t, func(raw *os.File) { _, _ = raw.WriteString(written) })
	require.Equal(t, written, log)
	require.LessOrEqual(t, len(text), maxOutput)
	require.True(t, strings.HasPrefix(text, "é") && strings.HasSuffix(text, "éx"))
}

// A secret may be anywhere in a line without a line feed, and may be written in two parts.
func TestLogPartsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	for _, offset := range []int{0, copyBytes - 8, copyBytes, 256<<10 - 8, 256 << 10, 288<<10 - 8, 288 << 10, 600 << 10} {
		t.Run(strconv.Itoa(offset), func(t *testing.T) {
			t.Parallel()
			log, tail := logOf(t, func(raw *os.File) {
				_, _ = raw.WriteString(strings.Repeat("x", offset) + "01234567")
				time.Sleep(3 * copyEvery / 2) // the result does not depend on this pause
				_, _ = raw.WriteString("89abcdef" + strings.Repeat("y", 10))
			})
			require.Equal(t, strings.Repeat("x", offset)+"[redacted]"+strings.Repeat("y", 10), log)
			require.True(t, strings.HasSuffix(tail, "[redacted]yyyyyyyyyy"))
		})
	}
	log, _ := logOf(t, func(raw *os.File) {
		_, _ = raw.WriteString("first\n")
		require.NoError(t, raw.Truncate(0)) // > /dev/stdout in sh truncates the file
		_, _ = raw.WriteString("b\n")
	})
	require.True(t, strings.HasSuffix(log, "b\n"))
}

// A line feed does not end a secret: base64 and fold break lines.
func TestLogLinesHaveNoSecrets(t *testing.T) {
	t.Parallel()
	log, tail := logOf(t, func(raw *os.File) {
		_, _ = raw.WriteString("first\n01234567\n")
		time.Sleep(3 * copyEvery / 2)
		_, _ = raw.WriteString("89abcdef\nlast\n")
	})
	require.Equal(t, "first\n[redacted]\nlast\n", log)
	require.Equal(t, strings.TrimSpace(log), tail)
}

// Invalid actions are rejected before any process starts.
func TestActionsAreValidatedBeforeTheStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.At = []string{"15s late: touch " + filepath.Join(r.folder, "output")} // streams end 5 s before the end of the 20 s
	_, _, err := drivers["local"](t, r)
	require.ErrorAs(t, err, &UsageError{})
	require.ErrorContains(t, err, "the action late must start before 15s, when the streams end, got 15s")
	require.Empty(t, r.pids())
	require.NoDirExists(t, filepath.Join(r.config.Out, "t"))
	require.Equal(t, plan.Action{Name: "late", At: 15 * time.Second, Command: "touch " + filepath.Join(r.folder, "output")}, r.session(r.config).actions[0])
}

// A lostRun loses the connection to its runners after its action.
type lostRun struct{ roundRun }

func (lostRun) Started() <-chan struct{} {
	started := make(chan struct{})
	close(started)
	return started
}

func (lostRun) Wait(graceful, _ context.Context) error {
	select {
	case <-graceful.Done():
	case <-time.After(3 * time.Second): // the actions have ended
	}
	return cluster.ErrUnreachable
}

type lostRunDriver struct{ kubernetes }

func (*lostRunDriver) start(context.Context, round) (roundRun, error) { return lostRun{}, nil }

// After a lost connection the record keeps the actions of the run, and the verdict of a session that attaches to it
// shows them.
func TestActionsSurviveALostConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.At = []string{"0s deploy: echo rolled", "15ms fails: exit 1"}
	d, _ := r.inCluster(t)
	s := d.session
	require.NoError(t, d.check(t.Context()))
	require.NoError(t, d.prepare(t.Context()))
	s.driver = &lostRunDriver{*d}
	require.ErrorIs(t, s.hold(r.graceful, r.force, round{dir: s.dir}, newMeter(s)), cluster.ErrUnreachable)

	_, err := d.start(t.Context(), round{dir: s.dir, shards: s.location, env: map[string]string{}})
	require.NoError(t, err)
	r.awaitRunners(t)
	r.release()
	outcome, err := r.attachTo(d).run(r.graceful, r.force)
	require.NoError(t, err)
	v := r.verdict(t)
	require.Equal(t, verdict.Invalid, outcome, "%v", v.Reasons)
	require.Equal(t, []string{"rolled", ""}, []string{v.Actions[0].Output, v.Actions[1].Output})
}

// The action's process has ended, but a process that it started still writes.
func TestTailHasNoPartOfASecret(t *testing.T) {
	t.Parallel()
	_, tail := logOf(t, func(raw *os.File) { _, _ = raw.WriteString("ready\nuses 01234567") })
	require.Equal(t, "ready\nuses [redacted]", tail)
}
