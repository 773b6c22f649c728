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

func TestSegmentsMatchK6WithoutGaps(t *testing.T) {
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
				require.EqualValues(t, tuple.ScaleInt64(int64(p.Connections)), p.Share(i), "the share of runner %d of %d", i, n)
			}
			p.Connections = 0
			shards = append(shards, &shard.Shard{
				Plan: p, Suite: &shard.Suite{Name: p.Suite}, Runner: shard.Runner{Index: i, Segment: segment.String(), State: shard.Finished},
				Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
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
	return Config{K6: k6, Script: "s.js", Document: plan.Document{Plan: p}, Token: "secret", Dir: dir}
}

// runToEnd runs the runners of a configuration to their end, and returns their group and a function for their logs.
func runToEnd(t *testing.T, c Config) (g *Group, log func(index int) string) {
	t.Helper()
	g, err := Start(c)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, g.Wait(ctx, t.Context()))
	require.NoError(t, ctx.Err(), "the runners did not end by themselves")
	return g, func(index int) string {
		text, err := os.ReadFile(logPath(c.Dir, index))
		require.NoError(t, err)
		return string(text)
	}
}

func TestRunnersGetThePlan(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 2, `echo "args $*"; env`)
	c.Settings = map[string]string{"STEP": "3"}
	g, log := runToEnd(t, c)
	require.Empty(t, g.Ends())
	require.Len(t, g.runners, 2)
	for i := 1; i <= 2; i++ {
		lines := strings.Split(log(i), "\n")
		require.Contains(t, lines[0], "--out soak="+filepath.Join(c.Dir, "shards"))
		require.Contains(t, lines[0], "--execution-segment "+Segment(i, 2)+" --execution-segment-sequence 0,1/2,1 s.js")
		require.NotContains(t, lines[0], "secret", "arguments must not contain the token, because every user can read them")
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

// The runners of a machine begin the phases of a suite together.
func TestRunnersWaitForEachOther(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 2, `touch "$0.$RUNNER"; eval "exec $READY_FD>&-"; eval "cat <&$START_FD"; echo "$0".*`)
	_, log := runToEnd(t, c)
	for i := 1; i <= 2; i++ {
		require.Equal(t, c.K6+".1 "+c.K6+".2\n", log(i))
	}
	_, log = runToEnd(t, fakeConfig(t, 1, "env"))
	require.NotContains(t, log(1), "START_FD", "a single runner must not wait for others")
}

func TestRunnersGetThePrometheusOutput(t *testing.T) {
	for _, c := range []struct{ url, stats, wantArgs, wantStats string }{
		{"http://p/api/v1/write", "", " --out experimental-prometheus-rw --tag testid=t --tag runner=2 s.js", "p(50),p(99),max"},
		{"http://p/api/v1/write", "avg", " --out experimental-prometheus-rw --tag testid=t --tag runner=2 s.js", "avg"},
		{"", "", "0,1/2,1 s.js", ""},
	} {
		t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", c.url)
		t.Setenv("K6_PROMETHEUS_RW_TREND_STATS", c.stats)
		_, log := runToEnd(t, fakeConfig(t, 2, `echo "args $*"; echo "stats=$K6_PROMETHEUS_RW_TREND_STATS"`))
		lines := strings.Split(log(2), "\n")
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
	runToEnd(t, c)
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
		{"echo x; kill -9 $$", " UTC (signal: killed; see k6-runner-1.log)"},
		{"kill -9 $$", " UTC (signal: killed)"},
	} {
		g, _ := runToEnd(t, fakeConfig(t, 1, c.script))
		if c.want == "" {
			require.Empty(t, g.Ends())
			continue
		}
		require.Len(t, g.Ends(), 1)
		require.Contains(t, g.Ends()[0].Text, c.want)
	}
}

func TestRunnersAreStartedInterruptedAndKilled(t *testing.T) {
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
	require.Empty(t, g.Ends(), "runners that ended after an interrupt must not be reported")

	g, err = Start(fakeConfig(t, 2, `trap '' INT TERM; echo '{"open":1}' >&3; while :; do sleep 0.02; done`))
	require.NoError(t, err)
	g.Kill()
	require.Len(t, g.Ends(), 2)
	require.Contains(t, g.Ends()[0].Text, "signal: killed")

	c.K6 += "-missing"
	_, err = Start(c)
	require.ErrorContains(t, err, "build k6 with `make build`")
}

// The test is not parallel, because it shortens the report interval of all runners.
func TestSilentRunnerIsKilled(t *testing.T) {
	previous := reportInterval
	reportInterval = time.Millisecond
	t.Cleanup(func() { reportInterval = previous })
	for _, isInterrupted := range []bool{false, true} {
		graceful, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		c := fakeConfig(t, 1, `trap '' INT; for i in 1 2 3 4 5 6 7 8 9 10; do echo '{"open":1}' >&3; sleep 0.02; done; kill -STOP $$`)
		c.OnReport = func(int, *shard.Progress) {
			if isInterrupted { // the runner has set its trap
				interrupt()
			}
		}
		var texts []string
		c.OnRetry = func(text string) { texts = append(texts, text) }
		g, err := Start(c)
		require.NoError(t, err)
		require.NoError(t, g.Wait(graceful, t.Context()))
		require.Len(t, texts, 1)
		require.Regexp(t, `^runner 1: no report for (600|120) ms, so soak kills the runner and keeps its last checkpoint$`, texts[0])
		require.Len(t, g.Ends(), 1)
		require.Contains(t, g.Ends()[0].Text, "runner 1 sent no more reports and was killed at ")
	}
}

// With K6_VUS or K6_ITERATIONS from the environment, a runner would open fewer streams than planned. With K6_OUT or
// K6_NO_THRESHOLDS, its results would be lost.
func TestRunnerIgnoresLoadInTheEnvironment(t *testing.T) {
	require.Empty(t, IgnoredVariables())
	for _, name := range []string{"K6_VUS", "K6_ITERATIONS", "K6_DURATION", "K6_STAGES", "K6_EXECUTION_SEGMENT", "K6_NO_SETUP", "K6_NO_THRESHOLDS", "K6_OUT", "K6_RPS", "K6_CONFIG", "K6_LINGER"} {
		t.Setenv(name, "1")
	}
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	t.Setenv("K6_NO_USAGE_REPORT", "1")
	_, log := runToEnd(t, fakeConfig(t, 1, "env"))
	var variables []string
	for line := range strings.Lines(log(1)) {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "K6_") && name != plan.DocumentVariable {
			variables = append(variables, strings.TrimSpace(line))
		}
	}
	require.ElementsMatch(t, []string{"K6_INSECURE_SKIP_TLS_VERIFY=true", "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false"}, variables)
	require.Contains(t, log(1), noConfiguration+"\n", "k6 must not read the configuration file of the user, which may set vus")
	require.Equal(t, "K6_CONFIG, K6_DURATION, K6_EXECUTION_SEGMENT, K6_ITERATIONS, K6_LINGER, K6_NO_SETUP, K6_NO_THRESHOLDS, K6_OUT, K6_RPS, K6_STAGES, K6_VUS in the environment: "+
		"ignored, because soak sets the options of the runners", IgnoredVariables())
}

func TestExceptionText(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		`{"hint":"script exception","level":"error","msg":"Error: STAGES must be a number, got \"x\".\n\tat parsed (file:///x.js:1:2(3))\n"}`: `STAGES must be a number, got "x".`,
		"{\"level\":\"warning\",\"msg\":\"w\"}\n{\"level\":\"error\",\"msg\":\"GoError: the stage \\\"a\\\" is there twice\\n\\tat y\"}":      `the stage "a" is there twice`,
		`{"level":"error","msg":"GoError: name is missing\nconnect is missing\n\tat x\n\tat y"}`:                                              "name is missing\nconnect is missing",
		`{"level":"error","msg":"Error: it has no trace\n"}`:                                                                                  "it has no trace",
		"": "", "not JSON\n": "",
	} {
		require.Equal(t, want, exceptionText([]byte(log)))
	}
}

func TestInspectReturnsTheRequirements(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, 1, `echo '{"totalDuration": "1m26s", "maxVUs": 4, "ext": {"soak": {"connections": 7, "seconds": 14}}}'`)
	needs, err := Inspect(t.Context(), c.K6, c.Script, plan.Document{}, nil)
	require.NoError(t, err)
	require.Equal(t, Requirements{VUs: 4, Connections: 7, Duration: 86 * time.Second, Seconds: 14}, needs)
}

// The script, or the description that it loads, may contain an endless loop.
func TestInspectLimitsTheTimeOfAScript(t *testing.T) {
	previous := inspectTimeout
	inspectTimeout = 50 * time.Millisecond
	t.Cleanup(func() { inspectTimeout = previous })
	k6 := filepath.Join(t.TempDir(), "k6")
	require.NoError(t, os.WriteFile(k6, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755))
	_, err := Inspect(t.Context(), k6, "soak.js", plan.Document{}, nil)
	require.ErrorAs(t, err, &SettingsError{})
	require.ErrorContains(t, err, "soak.js was not loaded within 50ms")
}

func TestPrometheusSettingsOfARemoteRunner(t *testing.T) {
	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "")
	settings, err := RemoteWriteSettings()
	require.NoError(t, err)
	require.Nil(t, settings, "without the URL of a server there must be no settings")

	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "http://u:p%2Fw@h:1/api/v1/write")
	t.Setenv("K6_PROMETHEUS_RW_HTTP_HEADERS", "X-Scope-OrgID:a")
	settings, err = RemoteWriteSettings()
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"K6_PROMETHEUS_RW_SERVER_URL": "http://h:1/api/v1/write", "K6_PROMETHEUS_RW_USERNAME": "u", "K6_PROMETHEUS_RW_PASSWORD": "p/w",
		"K6_PROMETHEUS_RW_HTTP_HEADERS": "X-Scope-OrgID:a", "K6_PROMETHEUS_RW_TREND_STATS": "p(50),p(99),max",
	}, settings, "k6 prints the URL, so it must not contain a password")

	t.Setenv("K6_PROMETHEUS_RW_USERNAME", "other")
	t.Setenv("K6_PROMETHEUS_RW_PASSWORD", "hush")
	t.Setenv("K6_PROMETHEUS_RW_TREND_STATS", "avg")
	settings, err = RemoteWriteSettings()
	require.NoError(t, err)
	require.Equal(t, []string{"other", "hush", "avg"}, []string{settings["K6_PROMETHEUS_RW_USERNAME"], settings["K6_PROMETHEUS_RW_PASSWORD"], settings["K6_PROMETHEUS_RW_TREND_STATS"]})

	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "h:pass@word")
	_, err = RemoteWriteSettings()
	require.EqualError(t, err, "K6_PROMETHEUS_RW_SERVER_URL must begin with http:// or https:// and name a host")

	t.Setenv("K6_PROMETHEUS_RW_SERVER_URL", "https://h/api/v1/write")
	t.Setenv("K6_PROMETHEUS_RW_CLIENT_CERTIFICATE", "/home/a/cert.pem")
	_, err = RemoteWriteSettings()
	require.ErrorContains(t, err, "K6_PROMETHEUS_RW_CLIENT_CERTIFICATE names a file on this machine")
}

// failedWrites is a log of k6 v2.2.0 with two failed writes to Prometheus.
const failedWrites = `time="2026-11-22T09:00:00Z" level=warning msg="a warning" error=x output="Prometheus remote write"
time="2026-11-22T09:00:00Z" level=error msg="Failed to send the time series data to the endpoint" error="got status code: 401 instead expected a 2xx successful status code" output="Prometheus remote write"
time="2026-11-22T09:00:05Z" level=error msg="Failed to send the time series data to the endpoint" error="HTTP POST request failed: Post \"http://h:1/w\": connection refused" output="Prometheus remote write"
`

func TestFailedWritesDoNotFailTheRun(t *testing.T) {
	t.Parallel()
	count, last := FailedWrites(strings.NewReader(failedWrites))
	require.Equal(t, 2, count)
	require.Equal(t, `HTTP POST request failed: Post "http://h:1/w": connection refused`, last)
	_, found := LastError(strings.NewReader(failedWrites))
	require.False(t, found)

	const other = `time="2026-11-22T09:00:00Z" level=error msg="the shard was not delivered"` + "\n"
	count, _ = FailedWrites(strings.NewReader(other))
	require.Zero(t, count)
	reason, found := LastError(strings.NewReader(other + failedWrites))
	require.True(t, found)
	require.Equal(t, `"the shard was not delivered"`, reason)
}
