package runners

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestSegmentsMatchK6AndTile(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 40; n++ {
		sequence, err := lib.NewExecutionSegmentSequenceFromString(Sequence(n))
		require.NoError(t, err, Sequence(n))
		require.Len(t, sequence, n)
		p := plan.Default()
		p.Suite, p.Runners, p.Connections = "any", n, 0 // without streams, because each stream would have to be observed
		var shards []*shard.Shard
		for i := 1; i <= n; i++ {
			segment, err := lib.NewExecutionSegmentFromString(Segment(i, n))
			require.NoError(t, err)
			require.Equal(t, sequence[i-1].String(), segment.String())
			tuple, err := lib.NewExecutionTuple(segment, &sequence)
			require.NoError(t, err)
			first, _, _ := tuple.GetStripedOffsets()
			require.EqualValues(t, i-1, first)
			for p.Connections = 1; p.Connections < 100; p.Connections++ {
				require.EqualValues(t, tuple.ScaleInt64(int64(p.Connections)), p.Share(i), "%d of %d", i, n)
			}
			p.Connections = 0
			shards = append(shards, &shard.Shard{
				Plan: p, Suite: &shard.Suite{Name: p.Suite}, Runner: shard.Runner{Index: i, Segment: segment.String(), State: shard.Finished},
				Connect: shard.NewHistogram(), FirstNoop: shard.NewHistogram(), Lateness: shard.NewHistogram(),
			})
		}
		if n <= 8 {
			require.Empty(t, shard.Merge(p, shards).Problems, "%d segments, as k6 writes them", n)
		}
	}
	require.Equal(t, "0:1", Segment(1, 1))
	require.Equal(t, "1/3:2/3", Segment(2, 3))
	require.Equal(t, "0,1/3,2/3,1", Sequence(3))
}

// fakeConfig returns a configuration with a shell script in place of k6.
func fakeConfig(t *testing.T, runners int, script string) Config {
	t.Helper()
	dir := t.TempDir()
	k6 := filepath.Join(dir, "k6")
	require.NoError(t, os.WriteFile(k6, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	p := plan.Default()
	p.TestID, p.Prefix, p.Runners, p.Connections, p.Seconds, p.NoopInterval, p.BackendURL = "t", "d-", runners, 7, 60, .5, "http://h"
	p.Reconnect = true
	return Config{K6: k6, Script: "s.js", Plan: p, Token: "secret", Dir: dir}
}

func wait(t *testing.T, g *Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, g.Wait(ctx, t.Context()))
	require.NoError(t, ctx.Err(), "the runners did not end by themselves")
}

func TestRunnersGetThePlan(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 2, `echo "args $*"; env`)
	c.Settings = map[string]string{"STEP": "3"}
	g, err := Start(c)
	require.NoError(t, err)
	wait(t, g)
	require.Empty(t, g.Ends())
	require.Len(t, g.runners, 2)
	for i := 1; i <= 2; i++ {
		text, err := os.ReadFile(filepath.Join(c.Dir, fmt.Sprintf("k6-runner-%d.log", i)))
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		require.Contains(t, lines[0], "--out soak="+filepath.Join(c.Dir, "shards"))
		require.Contains(t, lines[0], "--execution-segment "+Segment(i, 2)+" --execution-segment-sequence 0,1/2,1 s.js")
		require.NotContains(t, lines[0], "secret", "every user can read arguments")
		for _, want := range []string{
			fmt.Sprintf("RUNNER=%d", i), "NOOP_INTERVAL=0.5", "BACKEND_TOKEN=secret", "PROGRESS_FD=3", "K6_NO_USAGE_REPORT=true",
		} {
			require.True(t, slices.Contains(lines, want), want)
		}
		source, err := plan.SourceOf(func(name string) string {
			i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+"=") })
			return strings.TrimPrefix(lines[i], name+"=")
		})
		require.NoError(t, err)
		require.Equal(t, c.Plan, source.Base())
		require.Equal(t, "3", source.Setting("STEP"))
	}
}

// Not parallel, as it sets the environment.
func TestRunnersGetThePrometheusOutput(t *testing.T) {
	for _, c := range []struct{ url, stats, wantArgs, wantStats string }{
		{"http://p/api/v1/write", "", " --out experimental-prometheus-rw --tag testid=t --tag runner=2 s.js", "p(50),p(99),max"},
		{"http://p/api/v1/write", "avg", " --out experimental-prometheus-rw --tag testid=t --tag runner=2 s.js", "avg"},
		{"", "", "0,1/2,1 s.js", ""},
	} {
		t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", c.url)
		t.Setenv("K6_PROMETHEUS_RW_TREND_STATS", c.stats)
		config := fakeConfig(t, 2, `echo "args $*"; echo "stats=$K6_PROMETHEUS_RW_TREND_STATS"`)
		g, err := Start(config)
		require.NoError(t, err)
		wait(t, g)
		text, err := os.ReadFile(filepath.Join(config.Dir, "k6-runner-2.log"))
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		require.True(t, strings.HasSuffix(lines[0], c.wantArgs), lines[0])
		require.Equal(t, "stats="+c.wantStats, lines[1])
	}
}

func TestEachRunnerReportIsHandledOnce(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 2, `echo '{"open":1,"found":[{"id":"d-1","text":"1 missed"}]}' >&3; echo 'no JSON' >&3; echo '{"open":2}' >&3`)
	reports := make(chan string, 6)
	c.OnReport = func(index int, p *shard.Progress) {
		if p == nil {
			reports <- fmt.Sprintf("%d ended", index)
			return
		}
		reports <- fmt.Sprintf("%d has %d open, %d found", index, p.Open, len(p.Found))
	}
	g, err := Start(c)
	require.NoError(t, err)
	wait(t, g)
	close(reports)
	var texts []string
	for text := range reports {
		texts = append(texts, text)
	}
	require.ElementsMatch(t, []string{"1 has 1 open, 1 found", "1 has 2 open, 0 found", "1 ended", "2 has 1 open, 1 found", "2 has 2 open, 0 found", "2 ended"}, texts)
}

func TestProblemsOfRunners(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ script, want string }{
		{"exit 0", ""},
		{"exit 99", ""}, // a threshold: the verdict has the reason
		{`echo 'time=x level=error msg="no such host"'; echo 'level=info msg=bye'; exit 107`, `runner 1 ended with exit code 107: "no such host"`},
		{"exit 3", "runner 1 ended with exit code 3: see "},
		{"kill -9 $$", " UTC (signal: killed; see k6-runner-1.log)"},
	} {
		g, err := Start(fakeConfig(t, 1, c.script))
		require.NoError(t, err)
		wait(t, g)
		if c.want == "" {
			require.Empty(t, g.Ends())
			continue
		}
		require.Len(t, g.Ends(), 1)
		require.Contains(t, g.Ends()[0].Text, c.want)
	}
}

func TestRunnersAreInterruptedThenKilled(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 2, `trap 'exit 105' INT; echo '{"open":1}' >&3; while :; do sleep 0.02; done`)
	reports := make(chan *shard.Progress, 4)
	c.OnReport = func(_ int, p *shard.Progress) { reports <- p }
	g, err := Start(c)
	require.NoError(t, err)
	for range 2 { // each runner has set its trap
		require.Equal(t, 1, (<-reports).Open)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, g.Wait(ctx, t.Context()))
	require.Empty(t, g.Ends(), "interrupted runners ended in order")

	g, err = Start(fakeConfig(t, 2, `trap '' INT TERM; echo '{"open":1}' >&3; while :; do sleep 0.02; done`))
	require.NoError(t, err)
	g.Kill()
	require.Len(t, g.Ends(), 2)
	require.Contains(t, g.Ends()[0].Text, "signal: killed")
}

func TestMissingK6LeavesNothing(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 2, "")
	c.K6 += "-missing"
	_, err := Start(c)
	require.ErrorContains(t, err, "`make build` makes k6")
}
