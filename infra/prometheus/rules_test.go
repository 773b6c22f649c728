// Package prometheus tests the configuration and the rules in this folder.
package prometheus

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
