package compare

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// folder writes the files of run n that a comparison reads, and returns their folder. edit may be nil.
func folder(t *testing.T, n int, edit func(*verdict.Verdict)) string {
	t.Helper()
	v := &verdict.Verdict{Schema: verdict.Schema, Counts: verdict.Counts{Service: shard.Service{Name: "noop", SHA256: "of noop", CountBasis: shard.CountByInterval, Message: "noop"}}, TestID: fmt.Sprint("run-", n), Verdict: verdict.Pass, StartedUnix: float64(n)}
	v.Plan = plan.Default()
	v.Plan.BackendURL, v.Plan.Prefix, v.Plan.TestID = fmt.Sprintf("http://127.0.0.1:%d", 4000+n), fmt.Sprint("p", n), v.TestID
	wobble := float64(n%4) / 10
	v.LatenessMS = verdict.Quantiles{P50: 2 + wobble/10, P99: 20 + wobble}
	v.LatencyMS = &verdict.Latency{Quantiles: verdict.Quantiles{P50: 2 + wobble/10, P99: 30}}
	v.ConnectMS = verdict.Quantiles{P50: 10 + wobble, P99: 30 + wobble}
	v.Resources = verdict.Resources{BackendRSSMax: uint64(20+n%4) << 20, BackendCPUAverage: 4 + wobble, RunnerRSSMax: 120 << 20}
	v.Runners = []verdict.Runner{{Index: 1, Host: "a"}}
	if edit != nil {
		edit(v)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "verdict.json"), v)
	write(t, filepath.Join(dir, "run.json"), map[string]any{"one_clock": true})
	return dir
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

// readAll writes and reads n runs, numbered from first.
func readAll(t *testing.T, first, n int, edit func(*verdict.Verdict)) (out []Run) {
	t.Helper()
	for i := range n {
		r, err := Read(folder(t, first+i, edit))
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

func text(t *testing.T, c *Comparison) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, c.Text(&b))
	return b.String()
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		old, recent int
		edit        func(*verdict.Verdict)
		want        verdict.Outcome
		wantText    string
	}{
		{"equal runs, one new", 3, 1, nil, verdict.Pass, "NO REGRESSION  1 new run against 3 old runs"},
		{"too few runs for the test", 3, 2, nil, verdict.Pass, "such as 4 old and 4 new ones: with 3 old and 2 new, p is at least 0.2."},
		{"equal runs, four new", 4, 4, nil, verdict.Pass, "rank-sum test (Mann-Whitney)"},
		{"slower, by the band", 3, 1, func(v *verdict.Verdict) { v.LatenessMS.P99 = 60 }, verdict.Fail, "lateness p99: 60 ms instead of 20.2 ms (+197 %; outside"},
		{"slower by less than the tolerance", 4, 4, func(v *verdict.Verdict) { v.LatenessMS.P99 *= 1.08 }, verdict.Pass, "same"},
		{"faster", 4, 4, func(v *verdict.Verdict) { v.LatenessMS.P99 /= 2 }, verdict.Pass, "better"},
		{"a single noop missed", 2, 1, func(v *verdict.Verdict) { v.Messages.Missed = 1 }, verdict.Fail, "noops missed: up to 1, where no old run had any"},
		{"times of a saturated generator are unsure", 3, 1, func(v *verdict.Verdict) {
			v.Generator.Saturated, v.LatenessMS.P99 = true, 60
		}, verdict.Pass, "unsure"},
		{"losses with a saturated generator are certain", 3, 1, func(v *verdict.Verdict) { v.Generator.Saturated, v.Messages.Missed = true, 1 }, verdict.Fail, "noops missed"},
		{"another machine is a warning", 3, 1, func(v *verdict.Verdict) { v.Runners[0].Host = "b" }, verdict.Pass, "ran on [a]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			result, err := Compare(readAll(t, 1, c.old, nil), readAll(t, 50, c.recent, c.edit), .1)
			require.NoError(t, err)
			out := text(t, result)
			require.Equal(t, c.want, result.Verdict(), out)
			require.Contains(t, out, c.wantText)
		})
	}
}

// An equal delay of every message changes no gap between messages. Without a common clock, no metric shows this delay,
// and the comparison must state that.
func TestCompareListsUndetectableChanges(t *testing.T) {
	t.Parallel()
	latencyFrom := func(from string) func(*verdict.Verdict) {
		return func(v *verdict.Verdict) {
			v.LatencyMS.Above = from
			if from == verdict.AboveSend && v.StartedUnix >= 50 {
				v.LatencyMS.P50 += 5.5
			}
		}
	}
	noResources := func(v *verdict.Verdict) { v.Resources.BackendRSSMax, v.Resources.BackendCPUAverage = 0, 0 }
	noLatency := func(v *verdict.Verdict) { v.LatencyMS = nil }
	for name, c := range map[string]struct {
		old, recent func(*verdict.Verdict)
		want        verdict.Outcome
		wantText    string
	}{
		"one clock":                           {latencyFrom(verdict.AboveSend), latencyFrom(verdict.AboveSend), verdict.Fail, "latency p50: 7.5 ms"},
		"different clocks":                    {latencyFrom(verdict.AboveFastest), latencyFrom(verdict.AboveFastest), verdict.Pass, "undetectable: an equal delay of every message: service and runners have no clock in common"},
		"no time of sending":                  {noLatency, noLatency, verdict.Pass, "undetectable: an equal delay of every message: no time of sending is compared"},
		"a common clock of the old runs only": {latencyFrom(verdict.AboveSend), latencyFrom(verdict.AboveFastest), verdict.Pass, "latency p99 counts from the time of sending in some runs and not in others"},
		"resources of the new runs only":      {noResources, nil, verdict.Pass, "backend memory is unknown for some runs, so it is omitted"},
		"unknown resources":                   {noResources, noResources, verdict.Pass, "undetectable: memory and CPU of the service"},
	} {
		result, err := Compare(readAll(t, 1, 4, c.old), readAll(t, 50, 4, c.recent), .1)
		require.NoError(t, err)
		out := text(t, result)
		require.Equal(t, c.want, result.Verdict(), "%s: %s", name, out)
		require.Contains(t, out, c.wantText, name)
		if name == "one clock" {
			require.NotContains(t, out, "undetectable")
		}
	}
}

// addService changes the service of a run to a described service with a publisher. Each run has its own marker.
func addService(v *verdict.Verdict) {
	v.Plan.Service, v.Plan.Topics, v.Plan.PublishRate, v.Plan.NoopInterval, v.Plan.Marker = "/home/a/mine.js", 12, 12, 1, v.TestID+"-abcdef"
	v.Service = shard.Service{Name: "mine", SHA256: "of the description", CountBasis: shard.CountByNumber}
	v.LatencyMS.Above = verdict.AboveSend
	v.Messages.Published = &verdict.Publication{Planned: 100, Confirmed: 100, ResponseMS: v.LatencyMS.Quantiles}
	v.Messages.LastSubscriberMS = &verdict.Quantiles{P50: 4, P99: 40}
}

func TestCompareRunsOfADescribedService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit     func(*verdict.Verdict)
		want     verdict.Outcome
		wantText string
		wantErr  string
	}{
		"another marker and folder": {edit: func(v *verdict.Verdict) { v.Plan.Service = "/srv/mine.js" }, want: verdict.Pass, wantText: "publish response p99"},
		"a message not confirmed":   {edit: func(v *verdict.Verdict) { v.Messages.Published.Confirmed-- }, want: verdict.Fail, wantText: "messages not confirmed: up to 1"},
		"clocks that differ": {
			edit: func(v *verdict.Verdict) {
				v.LatencyMS.Above, v.Messages.LastSubscriberMS.P99 = verdict.AboveFastest, 400
			}, want: verdict.Pass, wantText: "last subscriber p99 counts from the time of sending in some runs and not in others",
		},
		"another service": {edit: func(v *verdict.Verdict) { v.Plan.Service = "nchan" }, wantErr: "service is mine in the first and nchan in the second"},
		"more topics":     {edit: func(v *verdict.Verdict) { v.Plan.Topics = 24 }, wantErr: "topics is 12 in the first and 24 in the second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := Compare(readAll(t, 1, 4, addService), readAll(t, 50, 4, func(v *verdict.Verdict) { addService(v); c.edit(v) }), .1)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			out := text(t, result)
			require.Equal(t, c.want, result.Verdict(), out)
			require.Contains(t, out, c.wantText)
			require.NotContains(t, out, "noop")
			require.NotContains(t, out, "lateness")
		})
	}
}

// requests returns a function that turns a run into a ramp-up of 6,000 requests with the given number of failures.
// times overrides the milliseconds of metrics by name.
func requests(failed int, times map[string]float64) func(*verdict.Verdict) {
	return func(v *verdict.Verdict) {
		v.Plan.Suite = "rampup"
		wobble := 1 + float64(int(v.StartedUnix)%4)/20
		for _, name := range []string{"mean", "p50", "p95", "p99", "max"} {
			ms := map[string]float64{"mean": 6, "p50": 5, "p95": 6, "p99": 7, "max": 20}[name] * wobble
			if slow, ok := times[name]; ok {
				ms = slow
			}
			v.Metrics = append(v.Metrics, verdict.Metric{Name: name + " at 200/s", Unit: "ms", Value: ms, Undelayed: &ms})
		}
		v.Metrics = append(v.Metrics, verdict.Metric{Name: "failed at 200/s", Unit: suite.OfRequests, Value: 100 * float64(failed) / 6000, Requests: 6000})
	}
}

// A tail of slow requests and new failures are regressions, even if p50 and p95 are unchanged. One failure may be
// chance.
func TestTailsAndNewFailuresAreRegressions(t *testing.T) {
	t.Parallel()
	tail := map[string]float64{"mean": 124, "p99": 3007, "max": 3010}
	setGeneratorDelay := func(v *verdict.Verdict) { // the generator may have caused the whole delay
		requests(0, tail)(v)
		v.Generator.Saturated = true
		for i := range v.Metrics {
			undelayed := 5.
			v.Metrics[i].Undelayed = &undelayed
		}
	}
	setOneFailure := func(v *verdict.Verdict) { // one failure in all new runs
		failed := 0
		if v.StartedUnix == 50 {
			failed = 1
		}
		requests(failed, nil)(v)
	}
	setSaturated := func(v *verdict.Verdict) { requests(0, tail)(v); v.Generator.Saturated = true }
	for name, c := range map[string]struct {
		edit func(*verdict.Verdict) // of the new runs
		want []string
	}{
		"no difference":                       {requests(0, nil), nil},
		"4 % took 3 s":                        {requests(0, tail), []string{"mean at 200/s", "p99 at 200/s", "max at 200/s"}},
		"0.83 % failures":                     {requests(50, nil), []string{"failed at 200/s"}},
		"one failure":                         {setOneFailure, nil},
		"a delay by the generator":            {setGeneratorDelay, nil},
		"a longer delay than the generator's": {setSaturated, []string{"mean at 200/s", "p99 at 200/s", "max at 200/s"}},
		"slower by a negligible time":         {requests(0, map[string]float64{"p50": 8, "p95": 10, "p99": 12}), nil},
	} {
		for _, old := range []int{3, 10} {
			for _, recent := range []int{1, 4} {
				result, err := Compare(readAll(t, 1, old, requests(0, nil)), readAll(t, 50, recent, c.edit), .1)
				require.NoError(t, err)
				var worse []string
				for _, change := range result.Regressions() {
					worse = append(worse, change.Name)
				}
				require.Equal(t, c.want, worse, "%s: %d against %d", name, old, recent)
			}
		}
	}
	c, err := Compare(readAll(t, 1, 3, requests(0, nil)), readAll(t, 50, 1, requests(50, nil)), .1)
	require.NoError(t, err)
	require.Contains(t, text(t, c), "failed at 200/s: 0.8 % instead of 0.0 % (from 0; outside")
	c, err = Compare(readAll(t, 1, 3, requests(300, nil)), readAll(t, 50, 1, requests(301, nil)), .1)
	require.NoError(t, err)
	require.Empty(t, c.Regressions(), "one failure in addition to 300 must not be a regression")
}

// The same number of faults as in earlier runs is not a regression; a higher number is.
func TestKnownFaultsAreNotRegressions(t *testing.T) {
	t.Parallel()
	missed := func(n uint64) func(*verdict.Verdict) {
		return func(v *verdict.Verdict) { v.Messages.Missed, v.Verdict = n+uint64(v.StartedUnix)%3, verdict.Fail }
	}
	for faults, want := range map[uint64]verdict.Outcome{5: verdict.Pass, 50: verdict.Fail, 0: verdict.Pass} {
		c, err := Compare(readAll(t, 1, 4, missed(5)), readAll(t, 9, 4, missed(faults)), .1)
		require.NoError(t, err)
		require.Equal(t, want, c.Verdict(), text(t, c))
	}
}

func TestCompareErrors(t *testing.T) {
	t.Parallel()
	good := readAll(t, 1, 3, nil)
	other := readAll(t, 9, 1, func(v *verdict.Verdict) { v.Plan.Connections = 7 })
	deploy := readAll(t, 9, 1, func(v *verdict.Verdict) {
		v.Actions = []verdict.Action{{ActionResult: verdict.ActionResult{Action: plan.Action{Name: "deploy", At: time.Minute, Command: "x"}}}}
	})
	for _, c := range []struct {
		name        string
		old, recent []Run
		wantText    string
	}{
		{"two runs", good[:1], good[1:2], "at least 3 runs"},
		{"no old runs", nil, good, "at least 2 of them old ones"},
		{"no new runs", good, nil, "at least one new run"},
		{"another plan", good, other, "connections is 1200 in the first and 7 in the second"},
		{"another action", good, deploy, "actions is missing in the first and 1m0s: x in the second"},
		{"the same run twice", good, good[:1], "are the same run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compare(c.old, c.recent, .1)
			require.ErrorContains(t, err, c.wantText)
		})
	}
	_, err := Compare(good[:2], good[2:], -1)
	require.ErrorContains(t, err, "tolerance")
}

func TestReadNeedsAJudgedRun(t *testing.T) {
	t.Parallel()
	_, err := Read(t.TempDir())
	require.ErrorContains(t, err, "has no verdict.json")
	_, err = Read(folder(t, 1, func(v *verdict.Verdict) { v.Verdict, v.Reasons = verdict.Invalid, []string{"runner 2 left no shard"} }))
	require.ErrorContains(t, err, "is invalid (runner 2 left no shard), so it cannot be compared")
	dir := t.TempDir()
	for content, want := range map[string]string{
		"{": "read ", "null": "is not a verdict", "{}": "is not a verdict",
		`{"schema": 7, "plan": {"testid": "t"}}`: "verdict.json: schema must be 3, got 7; delete it and run `soak merge " + dir + "`",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "verdict.json"), []byte(content), 0o600))
		_, err = Read(dir)
		require.ErrorContains(t, err, want, content)
	}
}

// A rate that the load generator limited is a lower bound. If at least half of the new runs have such a rate, the rates
// are not comparable. Old runs may have such rates, because their actual rates were even higher.
func TestGeneratorLimitedRate(t *testing.T) {
	t.Parallel()
	runs := func(first int, rate float64, bounds ...bool) (out []Run) {
		for i, bound := range bounds {
			out = append(out, readAll(t, first+i, 1, func(v *verdict.Verdict) {
				v.Metrics = []verdict.Metric{{Name: "peak responses/s", Unit: "responses/s", Value: rate + float64(i), HigherIsBetter: true, Bound: bound}}
			})...)
		}
		return out
	}
	for name, c := range map[string]struct {
		old, recent []Run
		want        verdict.Outcome
		wantText    string
	}{
		"no run limited by the generator":           {runs(1, 9000, false, false, false), runs(50, 6000, false, false, false), verdict.Fail, "peak responses/s: 6,001 responses/s instead of 9,001 responses/s"},
		"the old runs limited by the generator":     {runs(1, 9000, true, true, true), runs(50, 6000, false, false, false), verdict.Fail, "REGRESSION"},
		"one new run limited by the generator":      {runs(1, 9000, false, false, false), runs(50, 6000, false, true, false), verdict.Fail, "REGRESSION"},
		"most new runs limited by the generator":    {runs(1, 9000, false, false, false), runs(50, 6000, true, true, false), verdict.Pass, "peak responses/s is not comparable: the load generator was the limit in 2 of 3 new runs"},
		"the only new run limited by the generator": {runs(1, 9000, false, false, false), runs(50, 6000, true), verdict.Pass, "in 1 of 1 new run"},
	} {
		result, err := Compare(c.old, c.recent, .1)
		require.NoError(t, err)
		out := text(t, result)
		require.Equal(t, c.want, result.Verdict(), "%s: %s", name, out)
		require.Contains(t, out, c.wantText, name)
	}
}

// A service with its own cores is not comparable with a service that shares its cores with the runners.
func TestPlanIncludesCores(t *testing.T) {
	t.Parallel()
	runs := readAll(t, 1, 2, nil)
	separate := folder(t, 3, nil)
	write(t, filepath.Join(separate, "run.json"), map[string]any{
		"one_clock": true, "cores": "service on CPU 0, runners on CPU 1", "service_cores": []int{0}, "runner_cores": []int{1},
	})
	r, err := Read(separate)
	require.NoError(t, err)
	_, err = Compare(runs, []Run{r}, .1)
	require.ErrorContains(t, err, "cores is missing in the first and CPUs [0] for the service and [1] for the runners in the second")
}

// The address of a target that soak started is random. The address of another target is part of the plan.
func TestPlanIncludesTarget(t *testing.T) {
	t.Parallel()
	a, b, c := folder(t, 1, nil), folder(t, 2, nil), folder(t, 3, nil)
	for _, dir := range []string{a, b, c} {
		write(t, filepath.Join(dir, "run.json"), map[string]any{})
	}
	var runs []Run
	for _, dir := range []string{a, b, c} {
		r, err := Read(dir)
		require.NoError(t, err)
		runs = append(runs, r)
	}
	_, err := Compare(runs[:2], runs[2:], .1)
	require.ErrorContains(t, err, "backend_url is http://127.0.0.1:4001 in the first")
}

func TestRelativeChange(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, median := range []float64{100, 100.001, 99, 297} {
		texts = append(texts, Change{Old: Summary{Median: 100}, New: Summary{Median: median}}.relative())
	}
	require.Equal(t, []string{"0.0 %", "< 0.01 %", "−1.0 %", "+197 %"}, texts)
	require.Equal(t, "from 0", Change{New: Summary{Median: 1}}.relative())
}
