package run

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

func TestReplaceableRunners(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-20 * time.Minute).Truncate(time.Second)
	for name, c := range map[string]struct {
		edit     func(s *shard.Shard)
		wantText string // "": the runner is replaced
	}{
		"killed":      {func(_ *shard.Shard) {}, ""},
		"interrupted": {func(s *shard.Shard) { s.Runner.State = shard.Interrupted }, ""},
		"finished":    {func(s *shard.Shard) { s.Runner.State = shard.Finished }, "continue runner 2: it has finished"},
		"failed":      {func(s *shard.Shard) { s.Runner.State, s.Runner.Error = shard.Aborted, "no script" }, "it ended with an error (no script)"},
		"ended":       {func(s *shard.Shard) { s.Plan.Seconds = 600 }, "the run ends, or ended, at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan.Default()
			p.TestID, p.Prefix, p.BackendURL, p.Runners = "t", "d-", "http://h", 2
			last := shardOf(p, 2)
			last.Runner.State, last.Runner.StartedUS, last.Runner.EndedUS = shard.Running, start.UnixMicro(), start.Add(time.Minute).UnixMicro()
			c.edit(last)
			out := t.TempDir()
			d, err := results.Rejoin(out, "t")
			require.NoError(t, err)
			require.NoError(t, shard.Write(d.Path(filepath.Join(results.ShardsDir, shard.FileName(last.Runner))), last))
			s := &session{Config: Config{Plan: p, Continue: true, Stdout: io.Discard, Local: plan.Local{Out: out}}, runnerNumber: 2}
			err = s.replace(t.Context(), start.Add(20*time.Minute))
			if c.wantText != "" {
				require.ErrorContains(t, err, c.wantText)
				return
			}
			require.NoError(t, err)
			require.Equal(t, replacedRunner{runSeconds: 3600, startUS: start.UnixMicro()}, s.replacedRunner)
			require.Equal(t, start.UnixMicro(), s.document(nil).FirstStartUS)
			require.Equal(t, 2400, s.Plan.Seconds, "the part must run only for the remaining time")
		})
	}
}

// The pod of a Job repeats one command, whether or not its runner has started.
func TestContinueStartsRunnerWithoutShard(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.Runners = "t", 2
	s := &session{Config: Config{Plan: p, Continue: true, Stdout: io.Discard, Local: plan.Local{Out: t.TempDir()}}, runnerNumber: 2}
	require.NoError(t, s.replace(t.Context(), time.Now()))
	require.Equal(t, replacedRunner{}, s.replacedRunner)
	require.Equal(t, p.Seconds, s.Plan.Seconds)
	require.False(t, s.Continue, "the runner must start from the beginning")
}

// A runner and two replacements left three shards. The names of their files are random.
func TestPartReportsTheLastOfItsShards(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := watchedPlan()
	p.RunID = "r"
	for process, delayUS := range map[string]int64{"b": 0, "a": 1, "c": 0} {
		s := shardOf(p, 2)
		s.Runner.Process = process
		s.Runner.StartedUS += delayUS
		require.NoError(t, put(t.Context(), folder, s))
	}
	_, last, err := findShard(t.Context(), store.Folder(folder), 2, "r")
	require.NoError(t, err)
	require.Equal(t, "a", last.Runner.Process)
}
