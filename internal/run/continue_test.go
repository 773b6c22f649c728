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
		wantText string // "": it is replaced
	}{
		"killed":      {func(_ *shard.Shard) {}, ""},
		"interrupted": {func(s *shard.Shard) { s.Runner.State = shard.Interrupted }, ""},
		"finished":    {func(s *shard.Shard) { s.Runner.State = shard.Finished }, "continue runner 2: it has finished"},
		"failed":      {func(s *shard.Shard) { s.Runner.State, s.Runner.Error = shard.Aborted, "no script" }, "it ended with an error (no script)"},
		"ended":       {func(s *shard.Shard) { s.Plan.Seconds = 600 }, "the run ends, or has ended, at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan.Default()
			p.TestID, p.Prefix, p.BackendURL, p.Runners = "t", "d-", "http://h", 2
			last := &shard.Shard{
				Schema: shard.Schema, Plan: p, Connect: shard.NewHistogram(), FirstNoop: shard.NewHistogram(), Lateness: shard.NewHistogram(),
				Runner: shard.Runner{
					TestID: "t", Index: 2, Segment: "1/2:1", Script: "s.js", State: shard.Running, StartedUS: start.UnixMicro(), EndedUS: start.Add(time.Minute).UnixMicro(),
				},
			}
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
			require.Equal(t, replacedRunner{runSeconds: 3600, startUS: start.UnixMicro()}, s.replaced)
			require.Equal(t, 2400, s.Plan.Seconds, "the part must run for the remaining time only")
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
	require.Equal(t, replacedRunner{}, s.replaced)
	require.Equal(t, p.Seconds, s.Plan.Seconds)
	require.False(t, s.Continue, "the runner starts from the beginning")
}

// A runner and the one that replaced it left two shards; the names of their files are random.
func TestPartReportsTheLastOfItsShards(t *testing.T) {
	t.Parallel()
	shards, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer shards.Close()
	for _, runner := range []shard.Runner{{Process: "b", StartedUS: 1}, {Process: "a", StartedUS: 2, ReplacedStartUS: 1}, {Process: "c", StartedUS: 1}} {
		runner.Index, runner.RunID, runner.TestID, runner.Segment, runner.Script, runner.EndedUS = 2, "r", "t", "1/2:1", "s.js", 9
		s := &shard.Shard{Schema: shard.Schema, Runner: runner, Connect: shard.NewHistogram(), FirstNoop: shard.NewHistogram(), Lateness: shard.NewHistogram()}
		data, err := new(shard.Encoder).Encode(s)
		require.NoError(t, err)
		require.NoError(t, shards.Put(t.Context(), shard.FileName(runner), data))
	}
	_, last, err := findShard(t.Context(), shards, 2, "r")
	require.NoError(t, err)
	require.EqualValues(t, 2, last.Runner.StartedUS)
}
