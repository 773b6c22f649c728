// Package prometheus tests the configuration and the rules in this folder.
package prometheus

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	prompb "buf.build/gen/go/prometheus/prometheus/protocolbuffers/go"
	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/test/promserver"
	"github.com/sse-soak/sse-soak/test/untested"
)

// promtool runs the program promtool. The tests pass with version 2.42 and later ones.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	binary, err := exec.LookPath("promtool")
	if err != nil {
		untested.SkipMissing(t, "promtool is not installed: apt-get install prometheus")
	}
	out, err := exec.Command(binary, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// files returns the files that match the pattern, and their joined content.
func files(t *testing.T, pattern string) (paths []string, text string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		text += string(b)
	}
	return paths, text
}

func TestConfigurationIsValid(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "config", "prometheus.yml")
	base, err := os.ReadFile("prometheus.yml")
	require.NoError(t, err)
	aws, err := os.ReadFile("runners-aws.yml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(file, append(base, aws...), 0o600))
	promtool(t, "check", "config", file)
}

func TestRules(t *testing.T) {
	t.Parallel()
	tests, _ := files(t, "tests/*.yml")
	promtool(t, append([]string{"test", "rules"}, tests...)...)
}

func TestEachRuleHasATest(t *testing.T) {
	t.Parallel()
	_, rules := files(t, "rules/*.yml")
	_, tests := files(t, "tests/*.yml")
	records := regexp.MustCompile(`- record: (\S+)`).FindAllStringSubmatch(rules, -1)
	alerts := regexp.MustCompile(`- alert: (\S+)`).FindAllStringSubmatch(rules, -1)
	require.Len(t, append(records, alerts...), strings.Count(rules, "expr:"))
	for _, m := range records {
		require.Regexp(t, `- expr: (round\()?`+regexp.QuoteMeta(m[1]), tests, "a test must evaluate each record")
	}
	for _, m := range alerts {
		require.Contains(t, tests, "- alertname: "+m[1]+"\n", "a test must make each alert fire")
		require.Contains(t, tests, "- {alertname: "+m[1]+", ", "a test must check that each alert does not fire too early")
	}
}

// Samples that k6 writes have the time of the runner's clock, which may be wrong. Rules compare recorded series, whose
// samples have the time of Prometheus, instead of using time() or timestamp().
func TestNoRuleComparesTwoClocks(t *testing.T) {
	t.Parallel()
	_, rules := files(t, "rules/*.yml")
	require.NotRegexp(t, `\btime(stamp)?\(`, rules)
}

// The alert must not depend on the clock of the runner. promtool has only one clock, so this test runs a Prometheus
// server.
func TestRunnerSilentFiresForAnyClock(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs("rules")
	require.NoError(t, err)
	address := "http://" + promserver.Run(t, "127.0.0.1", fmt.Sprintf("global: {evaluation_interval: 1s}\nrule_files: ['%s/*.yml']\n", rules))
	to, err := archive.NewRemote(address)
	require.NoError(t, err)
	client, err := api.NewClient(api.Config{Address: address})
	require.NoError(t, err)
	query := func(expr string) model.Vector {
		value, _, err := prometheus.NewAPI(client).Query(t.Context(), expr, time.Now())
		require.NoError(t, err)
		return value.(model.Vector)
	}
	started := time.Now()
	report := func(runner string, clock time.Duration, open float64) {
		var all []*archive.Series
		for name, value := range map[string]float64{"k6_soak_reports_total": time.Since(started).Seconds(), "k6_soak_streams_open": open} {
			all = append(all, &archive.Series{
				Labels:  []*prompb.Label{{Name: "__name__", Value: name}, {Name: "runner", Value: runner}, {Name: "testid", Value: "t"}},
				Samples: []*prompb.Sample{{Value: value, Timestamp: time.Now().Add(clock).UnixMilli()}},
			})
		}
		require.NoError(t, to.Write(t.Context(), all))
	}
	clocks := map[string]time.Duration{"ahead": 4 * time.Minute, "right": 0, "behind": -4 * time.Minute, "ended": 4 * time.Minute}
	require.Eventually(t, func() bool {
		for runner, clock := range clocks {
			report(runner, clock, 600)
		}
		return len(query(`runner:soak_streams:open == 600 and runner:soak_reports:newest`)) == len(clocks)
	}, time.Minute, time.Second, "Prometheus must record the reports of all runners")
	silenceStart := time.Now()
	report("ended", clocks["ended"]+time.Millisecond, 0) // the extra millisecond makes this report later than the previous one
	const alerts = `ALERTS{alertname="RunnerSilent",alertstate="firing"}`
	require.Eventually(t, func() bool { return len(query(alerts)) == 3 }, time.Minute, time.Second, "the alert must fire for three runners")
	require.Less(t, time.Since(silenceStart), 45*time.Second)
	for _, alert := range query(alerts) {
		require.NotEqual(t, model.LabelValue("ended"), alert.Metric["runner"])
	}
}
