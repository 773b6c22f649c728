package soak

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/output"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// params returns the parameters of an output that writes to location.
func params(t *testing.T, location string, env map[string]string) output.Params {
	t.Helper()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	script := filepath.Join(t.TempDir(), "script.js")
	require.NoError(t, os.WriteFile(script, []byte("// a script"), 0o600))
	segment, err := lib.NewExecutionSegmentFromString("1/2:1")
	require.NoError(t, err)
	return output.Params{
		ConfigArgument: location, Environment: env, Logger: logger, ScriptPath: &url.URL{Scheme: "file", Path: script},
		ScriptOptions: lib.Options{ExecutionSegment: segment},
	}
}

func newTestOutput(t *testing.T, p output.Params) *soakOutput {
	t.Helper()
	o, err := newOutput(p, newPlannedRecorder(t))
	require.NoError(t, err)
	return o.(*soakOutput)
}

// A service that delays each message by 4 s is late on all runners of a machine, whether or not they publish. On other
// machines, the delay may be a difference between the clocks.
func TestRunnersOfOneMachineHaveOneClock(t *testing.T) {
	t.Parallel()
	for want, env := range map[time.Duration]map[string]string{4 * time.Second: plan.Document{OneClock: true}.Variables(), 0: {}} {
		r := newPlannedRecorder(t)
		_, err := newOutput(params(t, t.TempDir(), env), r)
		require.NoError(t, err)
		require.Equal(t, want, r.latenessOf(4*time.Second))
	}
}

func TestNewOutputRejectsInvalidSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		location string
		env      map[string]string
		want     string
	}{
		{"", nil, "the location of the shard is missing; pass --out soak=FOLDER"},
		{"x", map[string]string{"RUNNER": "0"}, `RUNNER must be the number of this runner, from 1, got "0"`},
		{"x", map[string]string{"RUNNER": "two"}, `got "two"`},
		{"x", map[string]string{"PROGRESS_FD": "2"}, `PROGRESS_FD must be an open file descriptor above 2, got "2"`},
		{"x", map[string]string{"PROGRESS_FD": "-"}, `PROGRESS_FD must be an open file descriptor above 2, got "-"`},
	} {
		_, err := newOutput(params(t, c.location, c.env), newRecorder())
		require.ErrorContains(t, err, c.want)
	}
}

func TestErrorDeterminesTheEndState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		want   shard.RunState
		reason string
	}{
		{nil, shard.Finished, ""},
		{errext.WithAbortReasonIfNone(errors.New("a threshold was missed"), errext.AbortedByThresholdsAfterTestEnd), shard.Finished, ""},
		{errext.WithAbortReasonIfNone(errors.New("a threshold aborted it"), errext.AbortedByThreshold), shard.Aborted, "a threshold aborted it"},
		{errext.WithAbortReasonIfNone(errors.New("signal"), errext.AbortedByUser), shard.Interrupted, "signal"},
		{errext.WithAbortReasonIfNone(errors.New("exec.test.abort()"), errext.AbortedByScriptAbort), shard.Aborted, "exec.test.abort()"},
		{errors.New("boom"), shard.Aborted, "boom"},
	} {
		state, reason := endState(c.err)
		require.Equal(t, []any{c.want, c.reason}, []any{state, reason})
	}
}

func TestShardFromStartToEnd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	o := newTestOutput(t, params(t, dir, map[string]string{"RUNNER": "2", "TESTID": "t"}))
	path := filepath.Join(dir, o.name)
	index, ok := shard.IndexOf(o.name)
	require.Equal(t, []any{2, true}, []any{index, ok})
	require.Equal(t, "soak ("+path+")", o.Description())
	require.NoError(t, o.Start())
	s, err := shard.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, shard.Running, s.Runner.State)
	require.Equal(t, 1, s.Runner.Checkpoints)
	client := newObserver(t, o.recorder, "d-0")
	client.connecting(time.Now())
	require.NoError(t, o.StopWithTestError(errors.New("boom")))
	s, err = shard.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []any{shard.Aborted, "boom"}, []any{s.Runner.State, s.Runner.Error})
	require.Len(t, slices.Collect(s.Records()), 1)
	require.Len(t, s.Series, 1)
	require.NotZero(t, s.Runner.RSSMax)
	require.NotNil(t, s.Machine.Series(machine.Overflows), "on Linux the shard must have the counters of the machine")
	require.GreaterOrEqual(t, s.Runner.EndedUS, s.Runner.StartedUS)
	require.Equal(t, []any{"t", 2, "1/2:1", "script.js", os.Getpid(), 2}, []any{s.Runner.TestID, s.Runner.Index, s.Runner.Segment, s.Runner.Script, s.Runner.PID, s.Runner.Checkpoints})
	require.Len(t, s.Runner.ScriptHash, 64)
}

// The runners of two laptops write to one folder: each has index 1.
func TestShardsOfTwoProcessesAreTwoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		o := newTestOutput(t, params(t, dir, nil))
		require.NoError(t, o.Start())
		o.delivery.deliverCheckpoint(o.shard())
		require.NoError(t, o.Stop())
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
}

func TestExistingFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mine.json.gz")
	first := newTestOutput(t, params(t, path, nil))
	require.NoError(t, first.Start())
	second := newTestOutput(t, params(t, path, nil))
	require.ErrorContains(t, second.Start(), path+" exists; remove it, or name a folder")
	second.delivery.localFolders = []string{t.TempDir()} // as if both processes had started at the same time
	require.ErrorContains(t, second.delivery.deliverFinal(second.shard()), path+" is the shard of another process")
	require.NoError(t, first.Stop())
	s, err := shard.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, first.runner.Process, s.Runner.Process)
	require.Equal(t, shard.Finished, s.Runner.State)
}

func TestRunNameFromScript(t *testing.T) {
	t.Parallel()
	o := newTestOutput(t, params(t, t.TempDir(), nil)) // `k6 run --env TESTID=…` sets the variable only for scripts
	require.Equal(t, o.recorder.plan.TestID, o.runner.TestID)
	require.NotEmpty(t, o.runner.TestID)
}

func TestUnwritableFolderFailsBeforeTheRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, newTestOutput(t, params(t, filepath.Join(file, "x"), nil)).Start(), file)
	require.Error(t, newTestOutput(t, params(t, "/proc/none", nil)).Start())
}

func TestUndeliveredShardIsSavedLocally(t *testing.T) {
	t.Parallel()
	dir, fallback := filepath.Join(t.TempDir(), "shards"), t.TempDir()
	stop := func(folders ...string) (o *soakOutput, err error) {
		o = newTestOutput(t, params(t, dir, map[string]string{"TESTID": "t"}))
		require.NoError(t, o.Start())
		require.NoError(t, os.RemoveAll(dir))
		o.delivery.localFolders = folders
		return o, o.Stop()
	}
	o, err := stop(filepath.Join(fallback, "none"), fallback)
	saved := filepath.Join(fallback, "t-"+o.name)
	require.ErrorContains(t, err, "(it is saved as "+saved+"); copy it to "+filepath.Join(dir, o.name))
	s, err := shard.ReadFile(saved)
	require.NoError(t, err)
	require.Equal(t, shard.Finished, s.Runner.State)

	_, err = stop(dir)
	require.ErrorContains(t, err, "write the shard: write "+dir)
	require.ErrorContains(t, err, "its data is lost")
}

func TestProgressNeedsNoReader(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		defer reader.Close()
		fd, err := syscall.Dup(int(writer.Fd())) // the output closes its descriptor
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		o := newTestOutput(t, params(t, t.TempDir(), map[string]string{"PROGRESS_FD": strconv.Itoa(fd)}))
		require.NoError(t, o.Start())
		newObserver(t, o.recorder, "d-0").connect(time.Now())
		if !reads {
			require.NoError(t, reader.Close())
		}
		require.NoError(t, o.Stop(), "the run must continue without a reader")
		var last shard.Progress
		for lines := json.NewDecoder(reader); reads && lines.More(); {
			require.NoError(t, lines.Decode(&last))
		}
		require.Equal(t, reads, last.Open == 1)
	}
}

// The operator starts all runners with the same environment, so only the segment distinguishes them.
func TestRunnerIndexFromSegment(t *testing.T) {
	t.Parallel()
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0,1/3,2/3,1")
	require.NoError(t, err)
	for text, want := range map[string]int{"0:1/3": 1, "1/3:2/3": 2, "2/3:1": 3, "0.5:1": 1} {
		segment, err := lib.NewExecutionSegmentFromString(text)
		require.NoError(t, err)
		got, err := runnerIndex("", lib.Options{ExecutionSegment: segment, ExecutionSegmentSequence: &sequence})
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	got, err := runnerIndex("7", lib.Options{})
	require.NoError(t, err)
	assert.Equal(t, 7, got, "an explicit runner number must have precedence")
	got, err = runnerIndex("", lib.Options{})
	require.NoError(t, err)
	assert.Equal(t, 1, got)
}
