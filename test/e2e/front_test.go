//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// The idle timeout of 2.5 intervals must not close a stream that the service is ending.
func TestServiceEndsStreamsSlowly(t *testing.T) {
	t.Parallel()
	spec := bareService(time.Second)
	spec.EndWait = 5 * time.Second
	_, url := startFake(t, spec, fakeservice.Strike{})
	r := begin(t, nil, "--backend-url", url, "--connections", "6", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, 15*time.Second, v.Plan.EndTimeout())
}

// soak ignores the variables and the configuration of k6. K6_VUS=1 would limit each runner to one stream. Connections
// to a service on this machine do not use the proxy of the environment.
func TestK6VariablesAreIgnored(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "k6"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "k6", "config.json"), []byte(`{"vus": 1, "linger": true}`), 0o644))
	r := begin(t, []string{"K6_VUS=1", "K6_ITERATIONS=1", "K6_NO_THRESHOLDS=true", "K6_EXECUTION_SEGMENT=0:1/2", "XDG_CONFIG_HOME=" + home, "http_proxy=http://127.0.0.1:1"},
		"--connections", "12", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, r.out.String(), "soak: warning: K6_EXECUTION_SEGMENT, K6_ITERATIONS, K6_NO_THRESHOLDS, K6_VUS in the environment: ignored")
	require.NotContains(t, strings.Join(v.Warnings, "\n"), "proxy")
}

// The script rejects options with which k6 would not run all checks, but exit with 0.
func TestScriptRejectsIncompleteOptions(t *testing.T) {
	t.Parallel()
	script := filepath.Join(root, "load-tests/sse/connectionTest.js")
	for name, c := range map[string]struct {
		args, env []string
		wantText  string
	}{
		"too short":           {args: []string{"--vus", "2", "--iterations", "2", "--duration", "5s"}, wantText: "must last 140 s, for SECONDS=120 and the end of the streams (END_TIMEOUT=15), got 35 s; write --duration 120s"},
		"one after the other": {args: []string{"--vus", "2", "--iterations", "4", "--duration", "10m"}, wantText: "must have one iteration per virtual user, got 4 for 2; write --vus 4"},
		"no iterations":       {args: []string{"--vus", "2", "--duration", "10m"}, wantText: "must have one iteration per virtual user, such as --vus 600 --iterations 600, got the executor constant-vus"},
		"fewer than planned":  {env: []string{"K6_VUS=1"}, args: []string{"--env", "CONNECTIONS=5"}, wantText: "CONNECTIONS must be at most 1 with the options of k6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", "--quiet", "--env", "BACKEND_URL=http://127.0.0.1:1", "--env", "SECONDS=120", "--env", "NOOP_INTERVAL=1"}, c.args...)
			cmd := exec.Command(filepath.Join(root, "bin", "k6"), append(args, script)...)
			cmd.Env = append(os.Environ(), c.env...)
			text, err := cmd.CombinedOutput()
			require.Error(t, err, string(text))
			require.Contains(t, string(text), c.wantText)
		})
	}
}
