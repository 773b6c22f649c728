//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const finiteExample = "09-finite-stream.js"

// example runs an example with the command in its header, and returns the exit code, the checks and the output of k6.
// fault is a fault of the backend or, for the finite stream, of the model; "" is no fault.
func example(t *testing.T, script, fault string) (code int, checks struct{ Passes, Fails int }, output string) {
	t.Helper()
	summary, url, prompt := filepath.Join(t.TempDir(), "summary.json"), "", ""
	if filepath.Base(script) == finiteExample {
		_, url = startModel(t)
		prompt = "soak id=example fault=" + cmp.Or(fault, "none")
	} else {
		url = backend(t, "NOOP_INTERVAL=1s", "BACKEND_FAULT="+fault)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "k6"), "run", "--env", "BACKEND_URL="+url, "--env", "PROMPT="+prompt,
		"--summary-export", summary, script)
	out, _ := cmd.CombinedOutput()
	text, err := os.ReadFile(summary)
	require.NoError(t, err, "%s", out)
	var s struct {
		Metrics struct{ Checks struct{ Passes, Fails int } }
	}
	require.NoError(t, json.Unmarshal(text, &s))
	return cmd.ProcessState.ExitCode(), s.Metrics.Checks, string(out)
}

func TestExamplesPass(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "examples", "*.js"))
	require.NoError(t, err)
	require.Len(t, scripts, 8)
	faults := map[string]string{"06-reconnect.js": "reset:noop=2"}
	for _, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			t.Parallel()
			code, checks, output := example(t, script, faults[filepath.Base(script)])
			require.Zero(t, code, output)
			require.Zero(t, checks.Fails, output)
			require.Positive(t, checks.Passes, output)
		})
	}
}

// The checks and thresholds of an example detect faults of the service.
func TestExamplesFindFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		code  int
	}{
		"01-hold-one-stream.js": {"stall:noop=1", 0},
		"03-count-noops.js":     {"drop:noop=2", 0},
		"05-thresholds.js":      {"reset:noop=2", 99},
		"06-reconnect.js":       {"drop:noop=2", 0},
		finiteExample:           {"truncate@10", 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, checks, output := example(t, filepath.Join(root, "examples", name), c.fault)
			require.Equal(t, c.code, code, output)
			require.Positive(t, checks.Fails, output)
		})
	}
}

func TestTwoLaptopsExample(t *testing.T) {
	t.Parallel()
	shards := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "examples", "07-two-laptops.sh"), shards)
	cmd.Env = append(os.Environ(), "BACKEND_URL="+backend(t, "NOOP_INTERVAL=1s"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	v := readVerdict(t, results.Dir(shards))
	require.Equal(t, verdict.Pass, v.Verdict, "%s", out)
	require.Equal(t, 10, v.Connections.Completed)
}
