package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
)

func history(t *testing.T, line string) (string, error) {
	t.Helper()
	output, _, err := soak(t, append([]string{"history"}, strings.Fields(line)...)...)
	return output, err
}

// threeRuns returns a folder of three runs that passed: first, second and third.
func threeRuns(t *testing.T) (out string) {
	t.Helper()
	out = t.TempDir()
	for name, started := range map[string]string{"first": "1", "second": "2", "third": "3"} {
		require.NoError(t, os.Mkdir(filepath.Join(out, name), 0o700))
		content := `{"schema": 3, "testid": "` + name + `", "verdict": "pass", "plan": {"connections": 100, "seconds": 60, "noop_interval_s": 1, "runners": 2}, "service": {"name": "noop", "sha256": "", "counts": "interval", "noun": "noop"}, "started_unix_s": ` + started + `}`
		require.NoError(t, os.WriteFile(filepath.Join(out, name, "verdict.json"), []byte(content), 0o600))
	}
	return out
}

func TestHistoryListsAndWritesThePage(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	output, err := history(t, "--limit 2 --out "+out)
	require.NoError(t, err)
	require.Contains(t, strings.Join(strings.Fields(output), " "), "3 runs, 3 pass")
	require.Contains(t, output, "PASS         third, ")
	require.Contains(t, output, "plan         soak: 100 streams, 60 s, a noop every 1 s, 2 runners")
	require.NotContains(t, output, "first, ")
	require.Contains(t, output, "… and 1 more")
	require.True(t, results.HasHistory(out))
}

func TestPruneReportsEachRun(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	output, err := history(t, "--prune --keep 1 --dry-run --out "+out)
	require.NoError(t, err)
	require.Equal(t, "kept          third: the newest run\nwould remove  second: pass, and not the newest run\n"+
		"would remove  first: pass, and not the newest run\nwould remove 2 of 3 runs in "+out+"\n", output)
	require.DirExists(t, filepath.Join(out, "first"))
	require.False(t, results.HasHistory(out))

	output, err = history(t, "--prune --keep 1 --out "+out)
	require.NoError(t, err)
	require.Contains(t, output, "removed       first: pass, and not the newest run\n")
	require.NoDirExists(t, filepath.Join(out, "first"))
	require.DirExists(t, filepath.Join(out, "third"))
	page, err := os.ReadFile(filepath.Join(out, results.HistoryFile))
	require.NoError(t, err)
	require.NotContains(t, string(page), "</b> first")
	require.Contains(t, string(page), "</b> third")
}

func TestHistoryRejectsInvalidFlags(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	for line, text := range map[string]string{
		"--prune": "got 0", "--prune --keep -1": "got -1", "--keep 3": "require --prune", "--dry-run": "require --prune", "--limit 0": "--limit must be at least 1", "what": "name two runs", "first second --prune --keep 1": "cannot be combined with run arguments",
	} {
		_, err := history(t, line+" --out "+out)
		require.ErrorAs(t, err, &usageError{}, line)
		require.ErrorContains(t, err, text)
	}
	require.DirExists(t, filepath.Join(out, "first"))
}

func TestHistoryComparesTwoRuns(t *testing.T) {
	t.Parallel()
	out := threeRuns(t)
	output, err := history(t, "first "+filepath.Join(out, "third")+" --out "+out)
	require.NoError(t, err)
	require.Contains(t, output, "old          first, 1970-01-01 00:00:01 UTC: pass\n")
	require.Contains(t, output, "changed      nothing")
	require.Contains(t, output, "The runs have the same plan.")
	_, err = history(t, "first missing --out "+out)
	require.ErrorContains(t, err, "missing is not the folder of a run")
}
