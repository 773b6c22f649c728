//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
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
	args := []string{"--backend-url", url, "--connections", "6", "--seconds", "9", "--noop-interval", "1"}
	t.Run("within END_TIMEOUT", func(t *testing.T) {
		t.Parallel()
		r := begin(t, nil, append(args, "--prefix", "a-")...)
		v := r.verdict()
		require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
		require.Equal(t, 15*time.Second, v.Plan.EndTimeout())
	})
	t.Run("beyond it", func(t *testing.T) {
		t.Parallel()
		r := begin(t, []string{"END_TIMEOUT=2"}, append(args, "--prefix", "b-")...)
		v := r.verdict()
		require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
		require.Equal(t, 6, v.Connections.Unfinished)
		require.Contains(t, reasons(v), "the server did not end 6 streams within 2 s of the request (END_TIMEOUT)")
	})
}

// soak ignores the variables and the configuration of k6. K6_VUS=1 would limit each runner to one stream.
func TestK6VariablesAreIgnored(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "k6"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "k6", "config.json"), []byte(`{"vus": 1, "linger": true}`), 0o644))
	r := begin(t, []string{"K6_VUS=1", "K6_ITERATIONS=1", "K6_NO_THRESHOLDS=true", "K6_EXECUTION_SEGMENT=0:1/2", "XDG_CONFIG_HOME=" + home},
		"--connections", "12", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, r.out.String(), "soak: warning: K6_EXECUTION_SEGMENT, K6_ITERATIONS, K6_NO_THRESHOLDS, K6_VUS in the environment: ignored")
}

// The script rejects options with which k6 would interrupt iterations before their checks, and exit with 0.
func TestScriptRejectsShortOptions(t *testing.T) {
	t.Parallel()
	script := filepath.Join(root, "load-tests/sse/connectionTest.js")
	for name, c := range map[string]struct {
		args, env []string
		wantText  string
	}{
		"too short":           {args: []string{"--vus", "2", "--iterations", "2", "--duration", "5s"}, wantText: "must last 140 s, for SECONDS=120 and the end of the streams (END_TIMEOUT=15), got 35 s; write --duration 120s"},
		"one after the other": {args: []string{"--vus", "2", "--iterations", "4", "--duration", "10m"}, wantText: "must have one iteration per virtual user, got 4 for 2; write --vus 4"},
		"no iterations":       {args: []string{"--vus", "2", "--duration", "10m"}, wantText: "must have one iteration per virtual user, such as --vus 600 --iterations 600, got the executor constant-vus"},
		"fewer than planned":  {env: []string{"K6_VUS=1"}, args: []string{"--env", "CONNECTIONS=5"}, wantText: "CONNECTIONS must be at most 1 by the options of k6"},
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

// A stream with other events is not reported as silent, but the events are listed.
func TestReportListsOtherEvents(t *testing.T) {
	t.Parallel()
	_, url := startFake(t, bareService(time.Second), fakeservice.Strike{Fault: fakeservice.Fault{Action: fakeservice.ActNamed, NeverEnds: true}})
	r := begin(t, []string{"END_TIMEOUT=1"}, "--backend-url", url, "--connections", "5", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), `named "noop", which message.event of the description does not match`)
}
