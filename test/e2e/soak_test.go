//go:build e2e

package e2e

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func TestSoak(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "--connections", "50", "--seconds", "12", "--noop-interval", "1", "--runners", "2", "--prefix", "e2e-")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, verdict.Connections{Planned: 50, Opened: 50, Completed: 50}, v.Connections)
	require.EqualValues(t, 350, v.Messages.Floor)
	require.InDelta(t, 350, v.Messages.Expected, 50, "each connection must expect floor(open / interval) noops, or one more")
	require.Equal(t, v.Messages.Expected, v.Messages.Received)
	require.True(t, v.Server.Known)
	require.True(t, v.Server.Agrees)
	require.Equal(t, v.Messages.Received, v.Server.Sent)
	require.Positive(t, v.Resources.BackendRSSMax)
	require.Positive(t, v.Resources.RunnerRSSMax)
	require.Positive(t, v.ConnectMS.P50)
	require.NotNil(t, v.LatencyMS)
	require.Equal(t, "send", v.LatencyMS.Above)
	for _, c := range v.ScriptChecks {
		require.EqualValues(t, 50, c.Passes, c.Name)
	}

	for _, name := range []string{
		results.PlanFile, results.LedgerFile, results.PageFile, "report.md", "report.txt", "connections.csv", "series.csv", "k6-runner-1.log", "k6-runner-2.log",
	} {
		require.FileExists(t, r.dir.Path(name))
	}
	require.FileExists(t, filepath.Join(filepath.Dir(string(r.dir)), "latest", results.VerdictFile))
	f, err := os.Open(r.dir.Path("connections.csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 51)
	r.requireNarrowReport()
}

// cleanRuns returns the number of clean runs that must pass: CLEAN_RUNS, or 3 by default.
func cleanRuns(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("CLEAN_RUNS"))
	if err != nil {
		return 3
	}
	t.Logf("%d clean runs", n)
	return n
}

// Clean runs must pass even on busy cores, in parallel with all other tests.
func TestCleanRunsPass(t *testing.T) {
	t.Parallel()
	for n := range cleanRuns(t) {
		t.Run(strconv.Itoa(n+1), func(t *testing.T) {
			t.Parallel()
			r := begin(t, nil, "--connections", "100", "--seconds", "10", "--noop-interval", "1")
			v := r.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
			require.Zero(t, v.Messages.Missed)
		})
	}
}

func TestKilledRunnerIsInvalid(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "10", "--noop-interval", "1", "--runners", "2")
	await(t, "the runners must start", func() bool {
		return strings.Contains(r.log("k6-runner-1.log", "backend.log"), "listening") && len(runnersOf(m)) == 2
	})
	require.NoError(t, syscall.Kill(runnersOf(m)[0], syscall.SIGKILL))
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "killed")
}

// The clients of an interrupted runner, for example on a drained host, are judged up to the interruption. Messages
// after the interruption do not count as missing.
func TestRunnerThatEndsEarly(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "16", "--noop-interval", "0.5", "--min-coverage", "40", "--runners", "2")
	await(t, "all streams must be open", func() bool { return strings.Contains(r.out.String(), "20/20 open") })
	require.NoError(t, syscall.Kill(runnersOf(m)[0], syscall.SIGTERM))
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, 10, v.Connections.Unwatched)
	require.Equal(t, 10, v.Connections.Completed)
	require.Contains(t, v.Sentence, "client-seconds that were watched; ")
}

// log returns the content of files of the run. It skips files that do not exist.
func (r *soakRun) log(names ...string) (all string) {
	for _, n := range names {
		b, err := os.ReadFile(r.dir.Path(n))
		if err == nil {
			all += string(b)
		}
	}
	return all
}

// runnersOf returns the ids of the k6 processes of a run.
func runnersOf(mark string) (pids []int) {
	for _, pid := range processes(mark) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && strings.Contains(string(line), "--execution-segment") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestCtrlCStopsInOrderAndIsInvalid(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "60", "--noop-interval", "1")
	await(t, "the runner must start", func() bool { return len(runnersOf(m)) == 1 })
	start := time.Now()
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	v := r.verdict()
	require.Less(t, time.Since(start), 40*time.Second)
	require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "stopped by a signal")
	requireNoProcess(t, m)
}

func TestSecondCtrlCKills(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "60", "--noop-interval", "1", "--runners", "2")
	await(t, "the runners must start", func() bool { return len(runnersOf(m)) == 2 })
	for _, pid := range runnersOf(m) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP)) // so that the runners cannot stop gracefully
	}
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	await(t, "soak must notice the first signal", func() bool { return strings.Contains(r.out.String(), "stopping") })
	await(t, "a later signal must kill the runners", func() bool { // soak ignores a signal immediately after the first
		_ = r.cmd.Process.Signal(os.Interrupt) // fails if soak has ended
		return strings.Contains(r.out.String(), "killing everything")
	})
	require.Equal(t, 2, r.end())
	requireNoProcess(t, m)
}

func TestPortableScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault, wantText string
		fails           bool
	}{
		"all messages arrive": {"", "90 out of 90", false},
		"a loss":              {"stall:noop=2", "✗ Received all messages", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(filepath.Join(root, "bin", "k6"), "run", "--quiet", filepath.Join(root, "load-tests/sse/portable.js"),
				"--env", "BACKEND_URL="+backend(t, "NOOP_INTERVAL=1", "BACKEND_FAULT="+c.fault), "--env", "NOOP_INTERVAL=1", "--env", "SECONDS=10", "--env", "CONNECTIONS=30").CombinedOutput()
			require.Equal(t, c.fails, err != nil, string(out))
			require.Contains(t, string(out), c.wantText)
		})
	}
}
