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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/cluster"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// An action runs where soak runs, whoever runs the runners.
func TestDriversRunActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command string // $GO lets the runners go on to their end
		want          verdict.Outcome
		code          int
		says          string // in the reasons
	}{
		{"one that succeeds", `echo "$SOAK_TESTID at $SOAK_TARGET in $SOAK_DIR"; (sleep .3; touch $GO) &`, verdict.Pass, 0, ""},
		{"one that fails", `(sleep .3; touch $GO) & echo no route >&2; exit 3`, verdict.Invalid, 3, "the action deploy ((sleep .3; touch $GO) & echo no route >&2; exit 3, at 200 ms) did not do what the run was to test: exit code 3; it said last: no route"},
		{"one that does not end", `echo $$; touch $GO; sleep 60; true`, verdict.Invalid, -1, "it still ran when the run ended, and was ended"},
	} {
		for name, drive := range drivers {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "")
				r.config.At = []string{"200ms deploy: " + strings.ReplaceAll(c.command, "$GO", filepath.Join(r.folder, "go"))}
				outcome, seen, err := drive(t, r)
				require.NoError(t, err)
				v := r.verdict(t)
				require.Equal(t, c.want, outcome, "%v", v.Reasons)
				require.NotEmpty(t, v.Actions)
				a := v.Actions[0]
				assert.Equal(t, c.code, a.ExitCode)
				assert.Equal(t, a.Acted, seen.Actions[0])
				assert.Less(t, a.StartedUnix, a.EndedUnix)
				if c.want == verdict.Pass {
					dir, err := filepath.Abs(filepath.Join(r.config.Out, "t"))
					require.NoError(t, err)
					assert.Equal(t, "t at "+r.service.URL+" in "+dir, a.Output)
					return
				}
				assert.Contains(t, strings.ReplaceAll(strings.Join(v.Reasons, "\n"), filepath.Join(r.folder, "go"), "$GO"), c.says)
				if pid, err := strconv.Atoi(a.Output); err == nil {
					assert.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH, "its group is left")
				}
			})
		}
	}
}

func TestCtrlCEndsActions(t *testing.T) {
	t.Parallel()
	r := newRig(t, holds)
	r.config.At = []string{"0s long: echo begun; sleep 60; true", "10s later: true"}
	var during sync.WaitGroup
	during.Go(func() {
		r.bothRun(t)
		assert.Eventually(t, func() bool {
			text, _ := os.ReadFile(filepath.Join(r.config.Out, "t", "action-long.log"))
			return len(text) > 0
		}, time.Minute, time.Millisecond)
		r.stop()
	})
	began := time.Now()
	outcome, seen, err := drivers["local"](t, r)
	during.Wait()
	require.NoError(t, err)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Equal(t, verdict.Invalid, outcome)
	require.Equal(t, []string{"it still ran when the run ended, and was ended", "it did not begin, since the run ended before"},
		[]string{seen.Actions[0].Problem, seen.Actions[1].Problem})
	require.False(t, seen.Actions[1].Began())
}

func TestWhatAnActionLeavesInTheBackgroundEndsWithTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.At = []string{"0s new: sleep 60 & echo $!; (sleep .3; touch " + filepath.Join(r.folder, "go") + ") &"}
	outcome, seen, err := drivers["local"](t, r)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome, "%v", r.verdict(t).Reasons)
	require.Less(t, seen.Actions[0].Took(), 10*time.Second, "the command itself ended at once")
	pid, err := strconv.Atoi(seen.Actions[0].Output)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", seen.Actions[0].Output, "stat"))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, time.Millisecond, "process %d is left", pid)
}

// An action that tells what it sends, as curl -v does, tells no token in run.json and in reports.
func TestAnActionsOutputShowsNoToken(t *testing.T) {
	t.Setenv("SUBSCRIBE_TOKEN", "to/read-1")
	t.Setenv("PUBLISH_TOKEN", "to-write-2")
	t.Setenv("BACKEND_TOKEN", "of-ours-3")
	log := filepath.Join(t.TempDir(), "log")
	said := "Bearer to/read-1, token=to%2Fread-1, to-write-2, of-ours-3"
	require.NoError(t, os.WriteFile(log, []byte(said), 0o600))
	require.Equal(t, "Bearer {token}, token={token}, {token}, {token}", tail(log))
	const rest = "d-1" // of the first, where the last 4 KiB begin
	require.NoError(t, os.WriteFile(log, []byte("to/read-1"+strings.Repeat("x", mostOutput-len(rest))), 0o600))
	require.NotContains(t, tail(log), rest)
}

func TestAnActionsOutputIsBounded(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte(strings.Repeat("é", mostOutput)+"x\n"), 0o600))
	text := tail(log)
	require.LessOrEqual(t, len(text), mostOutput)
	require.True(t, strings.HasPrefix(text, "é") && strings.HasSuffix(text, "éx"))
}

// What makes no sense is refused before anything is started.
func TestActionsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	c := r.config
	c.At = []string{"60: true"}
	require.ErrorContains(t, newSession(c).complete(time.Now()), `"60" is no time after the start`)
	r.config.At = []string{"15s late: touch " + filepath.Join(r.folder, "acted")} // streams are ended 5 s before the 20th
	_, _, err := drivers["local"](t, r)
	require.ErrorAs(t, err, &UsageError{})
	require.ErrorContains(t, err, "the action late is to begin at 15s, when the run is over: its streams are ended after 15s")
	require.Empty(t, r.pids())
	require.NoDirExists(t, filepath.Join(r.config.Out, "t"))
	require.Equal(t, plan.Action{Name: "late", At: 15 * time.Second, Command: "touch " + filepath.Join(r.folder, "acted")}, r.session(r.config).actions[0])
}

// A lostRun is one whose contact is lost after its action.
type lostRun struct{ running }

func (lostRun) Started() <-chan struct{} {
	now := make(chan struct{})
	close(now)
	return now
}

func (lostRun) Wait(graceful, _ context.Context) error {
	select {
	case <-graceful.Done():
	case <-time.After(500 * time.Millisecond):
	}
	return cluster.ErrLost
}

func (lostRun) Progress() (shard.Progress, *shard.Histogram) {
	return shard.Progress{}, shard.NewHistogram()
}

type losing struct{ kubernetes }

func (*losing) start(context.Context, round) (running, error) { return lostRun{}, nil }

// Where the contact with a run is lost its actions are kept, and the verdict of who attaches to it tells of them.
func TestActionsOutliveALostConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.At = []string{"0s deploy: echo rolled", "15ms fails: exit 1"}
	d, _ := r.inCluster(t)
	s := d.session
	require.NoError(t, d.check(t.Context()))
	require.NoError(t, d.prepare(t.Context()))
	s.driver = &losing{*d}
	require.ErrorIs(t, s.hold(r.graceful, r.force, round{dir: s.dir}, newMeter(s)), cluster.ErrLost)

	_, err := d.start(t.Context(), round{dir: s.dir, shards: s.location, env: map[string]string{}})
	require.NoError(t, err)
	r.bothRun(t)
	r.letGo()
	other := newSession(Config{Local: r.config.Local, Plan: plan.Plan{TestID: "t"}, Stdout: &bytes.Buffer{}, Kubernetes: Kubernetes{Namespace: namespace, StartTimeout: time.Minute}})
	other.driver = &attached{kubernetes{session: other, client: d.client, look: 5 * time.Millisecond}}
	outcome, err := other.run(r.graceful, r.force)
	require.NoError(t, err)
	v := r.verdict(t)
	require.Equal(t, verdict.Invalid, outcome, "%v", v.Reasons)
	require.Equal(t, []string{"rolled", ""}, []string{v.Actions[0].Output, v.Actions[1].Output})
}
