package run

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// With every driver, actions run on the machine that runs soak.
func TestDriversRunActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		driver, command string // the runners end when the file $GO exists
		want            verdict.Outcome
		code            int
		wantText        string // in the reasons
	}{
		{"parts", `echo "$SOAK_TESTID at $SOAK_TARGET in $SOAK_DIR"; (sleep .3; touch $GO) &`, verdict.Pass, 0, ""},
		{"kubernetes", `(sleep .3; touch $GO) & echo no route >&2; exit 3`, verdict.Invalid, 3, "the action deploy ((sleep .3; touch $GO) & echo no route >&2; exit 3, at 200 ms) failed: exit code 3; last line of its output: no route"},
		{"local", `echo $$; touch $GO; sleep 60; true`, verdict.Invalid, -1, "it was stopped when the run ended"},
	} {
		withDrivers(t, "", func(t *testing.T, r *rig, drive driverOfRig) {
			r.config.At = []string{"200ms deploy: " + strings.ReplaceAll(c.command, "$GO", filepath.Join(r.folder, ends))}
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
				dir, err := filepath.Abs(string(r.dir()))
				require.NoError(t, err)
				assert.Equal(t, "t at "+r.service.URL+" in "+dir, a.Output)
				return
			}
			assert.Contains(t, strings.ReplaceAll(strings.Join(v.Reasons, "\n"), filepath.Join(r.folder, ends), "$GO"), c.wantText)
			if pid, err := strconv.Atoi(a.Output); err == nil {
				assert.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "a process of the action still runs")
			}
		}, c.driver)
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
			text, _ := os.ReadFile(r.dir().Path("action-long.log"))
			return len(text) > 0
		}, time.Minute, time.Millisecond)
		r.stop()
	})
	start := time.Now()
	outcome, record, err := driveLocal(t, r)
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
	r := newRig(t)
	r.config.At = []string{"0s new: sleep 60 & echo $!; (sleep .3; touch " + filepath.Join(r.folder, ends) + ") &"}
	outcome, record, err := driveLocal(t, r)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome, "%v", r.verdict(t).Reasons)
	require.Less(t, record.Actions[0].Duration(), 10*time.Second, "the command itself must end at once")
	pid, err := strconv.Atoi(record.Actions[0].Output)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", record.Actions[0].Output, "stat"))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, time.Millisecond, "process %d still runs", pid)
}

// An action may print its request, as curl -v does, or its environment. No secret may reach the folder of the run.
func TestActionOutputHasNoSecrets(t *testing.T) {
	t.Setenv("SUBSCRIBE_TOKEN", "to/read-1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d")
	t.Setenv("LC_ALL", "C")
	r := newRig(t)
	var stdout bytes.Buffer
	r.config.Stdout = &stdout
	r.config.AtEnv = "AWS_SECRET_ACCESS_KEY,NOT_SET"
	r.config.At = []string{"0s env: env; echo token=to%2Fread-1, aa$AWS_SECRET_ACCESS_KEY; : curl -H 'Authorization: Bearer ATsekret7' -u a:0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d; (sleep .3; touch " + filepath.Join(r.folder, ends) + ") &"}
	outcome, record, err := driveLocal(t, r)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)
	info, err := os.Stat(r.dir().Path("action-env.log"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	log := readFile(t, r.dir().Path("action-env.log"))
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
	r.requireAbsent(t, "to/read-1", "to%2Fread-1", "0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d", "ATsekret7")
	require.Contains(t, stdout.String(), "Authorization: [redacted]")

	s := newSession(Config{Local: plan.Local{AtEnv: plan.AllVariables}})
	require.Equal(t, os.Environ(), s.actionVariables(os.Environ()))
}

func TestActionLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	const secretHead, secretTail = "01234567", "89abcdef"
	large, many := strings.Repeat("x", copyBytes-8), strings.Repeat("x", 9*copyBytes)
	bounded := strings.Repeat("é", maxOutput) + "x\n"
	for name, c := range map[string]struct {
		parts     []string // written with pauses between them; the results do not depend on the pauses
		log, tail string   // the whole log ("": not checked), and the end of its tail
	}{
		"in one line":             {[]string{secretHead, secretTail + "yy"}, "[redacted]yy", "[redacted]yy"},
		"at the end of a read":    {[]string{large + secretHead, secretTail + "yy"}, large + "[redacted]yy", "[redacted]yy"},
		"after many reads":        {[]string{many + secretHead, secretTail + "yy"}, many + "[redacted]yy", "[redacted]yy"},
		"broken by a line feed":   {[]string{"first\n" + secretHead + "\n", secretTail + "\nlast\n"}, "first\n[redacted]\nlast\n", "first\n[redacted]\nlast"}, // as base64 and fold print it
		"incomplete at the end":   {[]string{"ready\nuses " + secretHead}, "", "ready\nuses [redacted]"},                                                      // a background process still writes
		"absent from long output": {[]string{bounded}, bounded, "éx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, tail := logOf(t, func(raw *os.File) {
				for i, part := range c.parts {
					if i > 0 {
						time.Sleep(3 * copyEvery / 2)
					}
					_, _ = raw.WriteString(part)
				}
			})
			if c.log != "" {
				require.Equal(t, c.log, log)
			}
			require.True(t, strings.HasSuffix(tail, c.tail), tail)
			require.LessOrEqual(t, len(tail), maxOutput)
			require.True(t, utf8.ValidString(tail), "%q is not valid UTF-8", tail)
		})
	}
	log, _ := logOf(t, func(raw *os.File) {
		_, _ = raw.WriteString("first\n")
		require.NoError(t, raw.Truncate(0)) // > /dev/stdout in sh truncates the file
		_, _ = raw.WriteString("b\n")
	})
	require.True(t, strings.HasSuffix(log, "b\n"))
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
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return readFile(t, path), tail
}

// A lostRun loses the connection to its runners after its actions.
type lostRun struct {
	roundRun
	file string // created by the last action
}

func (lostRun) Started() <-chan struct{} {
	started := make(chan struct{})
	close(started)
	return started
}

func (l lostRun) Wait(graceful, _ context.Context) error {
	for graceful.Err() == nil {
		if _, err := os.Stat(l.file); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return cluster.ErrUnreachable
}

type lostRunDriver struct {
	kubernetes
	run lostRun
}

func (d *lostRunDriver) start(context.Context, round) (roundRun, error) { return d.run, nil }

// After a lost connection the record keeps the actions of the run, and the verdict of a session that attaches to the
// run shows them.
func TestActionsSurviveALostConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, last := filepath.Join(r.folder, "first"), filepath.Join(r.folder, "last")
	r.config.At = []string{"0s deploy: echo rolled; touch " + first, "15ms fails: until test -e " + first + "; do sleep .01; done; touch " + last + "; exit 1"}
	d, _ := r.inCluster(t)
	s := d.session
	require.NoError(t, d.check(t.Context()))
	require.NoError(t, d.prepare(t.Context()))
	s.driver = &lostRunDriver{*d, lostRun{file: last}}
	require.ErrorIs(t, s.runRound(r.graceful, r.force, round{dir: s.dir}, newMeter(s)), cluster.ErrUnreachable)

	_, err := d.start(t.Context(), round{dir: s.dir, shards: s.location})
	require.NoError(t, err)
	r.awaitRunners(t)
	r.release()
	outcome, err := r.attachTo(d).run(r.graceful, r.force)
	require.NoError(t, err)
	v := r.verdict(t)
	require.Equal(t, verdict.Invalid, outcome, "%v", v.Reasons)
	require.Equal(t, []string{"rolled", ""}, []string{v.Actions[0].Output, v.Actions[1].Output})
}
