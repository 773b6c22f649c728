package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// measureFinitePeers reports the responses per second of CPU of other load generators, including their start.
func measureFinitePeers(b *testing.B, url string, concurrency int) {
	b.Helper()
	report := func(metric string, cmd *exec.Cmd, count func() (responses float64)) {
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, "%s", out)
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // includes its children
		b.ReportMetric(count()/cpu.Seconds(), metric)
	}
	dir, seconds := b.TempDir(), strconv.Itoa(int(size.window.Seconds()))
	summary := filepath.Join(dir, "k6.json")
	k6 := exec.CommandContext(b.Context(), "bin/k6", "run", "--quiet", "--vus", strconv.Itoa(concurrency), "--duration", seconds+"s",
		"--env", "MODEL_URL="+url, "--env", "SUMMARY="+summary, "tools/bench/responses.js")
	report("k6-http-responses/core-s", k6, func() float64 {
		var r struct{ Responses float64 }
		readJSON(b, summary, &r)
		return r.Responses
	})
	program, err := exec.LookPath("aiperf")
	tokenizer := os.Getenv("BENCH_TOKENIZER")
	if err != nil || tokenizer == "" {
		b.Log("aiperf not measured: it is not installed, or BENCH_TOKENIZER is not set; install aiperf from PyPI, and set BENCH_TOKENIZER")
		return
	}
	aiperf := exec.CommandContext(b.Context(), program, "profile", "--model", "m", "--url", url, "--endpoint-type", "chat", "--streaming",
		"--concurrency", strconv.Itoa(concurrency), "--benchmark-duration", seconds, "--tokenizer", tokenizer, "--ui", "none", "--output-artifact-dir", dir)
	report("aiperf-responses/core-s", aiperf, func() float64 {
		var r struct {
			Requests struct{ Avg float64 } `json:"request_count"`
		}
		readJSON(b, filepath.Join(dir, "profile_export_aiperf.json"), &r)
		return r.Requests.Avg
	})
}

func readJSON(b *testing.B, path string, value any) {
	b.Helper()
	text, err := os.ReadFile(path)
	require.NoError(b, err)
	require.NoError(b, json.Unmarshal(text, value))
}
