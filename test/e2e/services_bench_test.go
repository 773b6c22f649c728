//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of `make services-bench` has a row for each service with its messages and its cost. A service that is not
// installed has a row with the reason.
func TestCompareServices(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", "tools", "./thirdparty", "services", "-root", "..", "-only", "nchan,backend",
		"-connections", "40", "-topics", "4", "-publish-rate", "4", "-seconds", "15", "-runners", "1", "-out", out)
	cmd.Dir = filepath.Join("..", "..")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	text, err := os.ReadFile(filepath.Join(out, "services.json"))
	require.NoError(t, err)
	var report struct {
		Services []struct {
			Service, Verdict, Settings, Version string
			Findings                            []string
			Messages                            struct{ Received, Expected int }
			Cost                                struct {
				Median uint64 `json:"median_bytes"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &report))
	require.Len(t, report.Services, 2)
	for _, s := range report.Services {
		t.Logf("%+v", s)
		if s.Verdict == "" && len(s.Findings) == 1 && s.Version == "" { // the service is not installed
			require.Contains(t, s.Findings[0], "cannot be started")
			continue
		}
		require.Equal(t, "pass", s.Verdict, s.Findings)
		require.Positive(t, s.Messages.Received)
		require.Equal(t, s.Messages.Expected, s.Messages.Received)
		require.NotEmpty(t, s.Version)
		require.NotEmpty(t, s.Settings)
		require.Greater(t, s.Cost.Median, uint64(1<<20))
	}
	table, err := os.ReadFile(filepath.Join(out, "services.md"))
	require.NoError(t, err)
	require.Regexp(t, `\| backend +\| pass +\|`, string(table))
}
