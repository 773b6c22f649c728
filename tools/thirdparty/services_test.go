package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

func TestEachServiceHasTraits(t *testing.T) {
	names, _ := new(servicesBench).names()
	for _, name := range names {
		require.Len(t, traits[name], 3, name)
	}
	require.Len(t, traits, len(names))
}

func TestFormatNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", .0123: "0.012", -1.25: "-1.2", -12.4: "-12", 1234: "1,234", -1234: "−1,234"} {
		require.Equal(t, want, formatNumber(v))
	}
}

// The cost covers only the samples within the window.
func TestCostOfAWindow(t *testing.T) {
	start := time.Unix(1000, 0)
	var s sampler
	for i := range 20 {
		memory := uint64(100)
		if i == 7 {
			memory = 900
		}
		s.samples = append(s.samples, sample{start.Add(time.Duration(i) * time.Second), services.Usage{Memory: memory, CPU: float64(i * i)}, 2})
	}
	c, err := s.costBetween(start.Add(5*time.Second), start.Add(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, Cost{MedianBytes: 100, MaxBytes: 900, CPUSeconds: 75, WindowS: 5, Load: 2}, c)

	_, err = s.costBetween(start.Add(time.Minute), start.Add(2*time.Minute))
	require.EqualError(t, err, "measure the cost: only 0 samples in 60 s")
	s.lastError = errors.New("no such process")
	_, err = s.costBetween(start.Add(time.Minute), start.Add(2*time.Minute))
	require.EqualError(t, err, "measure the cost: only 0 samples in 60 s: no such process")
}

// The tables of a run with a publisher list its counts, its cost per stream and message, and the unmet checks.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "runs", "mine")
	require.NoError(t, os.MkdirAll(run, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(run, "verdict.json"), []byte(`{
		"verdict": "fail", "reasons": ["one", "two"], "checks": [{"name": "opened", "pass": true},
			{"name": "messages missed", "limit": "0", "actual": "10"}], "started_unix_s": 1000, "ended_unix_s": 1100,
		"connections": {"opened": 10}, "latency_ms": {"p50": 1.25, "p99": 20, "max": 1234.5}, "connect_ms": {"p99": 7},
		"messages": {"received": 950, "expected": 960, "missed": 10, "duplicated": 2, "repeated": 1, "reordered": 3,
			"last_subscriber_ms": {"p50": 2, "p99": 3, "max": 4}, "published": {"rate": 2, "planned": 190, "confirmed": 189, "response_ms": {"p99": 5}}},
		"tables": [{"title": "Resumes by kind of disconnect", "note": "outage: in seconds", "columns": ["cut", "lost"], "rows": [["fin", "3"], ["rst", ""]]}],
		"generator": {"cpu_seconds": 5, "saturated": true}}`), 0o600))
	r := row{Service: "mine", Version: "1.0"}
	require.NoError(t, r.read(run))
	require.Equal(t, []string{"one", "messages missed: 10 (limit: 0)"}, r.Findings)
	from, to := r.window()
	require.Equal(t, []int64{1025, 1097}, []int64{from.Unix(), to.Unix()})
	r.Cost = Cost{IdleBytes: 1 << 20, MedianBytes: 1<<20 + 20<<10, CPUSeconds: 7.2, WindowS: 72, Load: 1.5}

	var text strings.Builder
	bench := servicesBench{
		options: &options{RunInfo: &page.RunInfo{}}, Suite: "resume", Load: load{2000, 20, 20, 300, 2},
		Rows: []row{r, {Service: "other", Findings: []string{"it is\nnot there"}}},
	}
	require.NoError(t, bench.write(&text))
	output := regexp.MustCompile(` +`).ReplaceAllString(text.String(), " ")
	for _, line := range []string{
		"| mine | fail | 950 | 10 | 3 | 3 | 1.2 / 20 / 1,235 | 2.0 / 3.0 / 4.0 | 5.0 |",
		"| other | not measured | – | – | – | – | – | – | – |",
		"\n\nResumes by kind of disconnect (outage: in seconds):\n\n| service | cut | lost |\n|--- |--- |--- |\n| mine | fin | 3 |\n| mine | rst | – |\n",
		"| mine | 2.0 | 1.0 | 10 | 10,000 | 36 | 7.0 | 5.0, saturated | 1.5 |",
		"- mine: one", "- mine: messages missed: 10 (limit: 0)", "- other: it is not there",
	} {
		require.Contains(t, output, line+"\n")
	}
}

func TestInvalidOptions(t *testing.T) {
	parse := func(args ...string) error {
		_, err := new(options).parse("services", &servicesBench{options: &options{}}, append(args, "-root", "../..", "-out", t.TempDir()))
		return err
	}
	for list, unknown := range map[string]string{bareSuffix: bareSuffix, "nchan,nchen": "nchen", backend + bareSuffix: backend + bareSuffix} {
		require.ErrorContains(t, parse("-only", list), fmt.Sprintf("-without-history, got %q", unknown))
	}
	for _, bad := range []string{"-connections=0", "-topics=0", "-publish-rate=0", "-runners=0", "-seconds=14"} {
		require.ErrorContains(t, parse(bad), "must be positive")
	}
}
