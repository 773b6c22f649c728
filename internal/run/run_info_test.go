package run

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The report names how the result was produced: the command with its variables, commit, versions and machine.
func TestReportHasRunInfo(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.Commit, r.config.Version, r.config.Variables = "0123456789ab+dirty", "v1.2.3", []string{"CONNECTIONS=4", "PUBLISH_TOKEN=hunter2"}
	go func() {
		r.bothRun(t)
		r.release()
	}()
	outcome, err := r.session(r.config).run(r.graceful, r.force)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)

	ran := r.verdict(t).RunInfo
	require.NotNil(t, ran)
	require.Equal(t, []string{"env", "CONNECTIONS=4", "PUBLISH_TOKEN=[redacted]", os.Args[0]}, ran.Command[:4])
	require.Equal(t, ran.Command, r.record(t, results.RunFile).Command, "no secret in run.json either")
	require.Equal(t, []string{"0123456789ab+dirty", "v1.2.3", runtime.Version()}, []string{ran.Commit, ran.Soak, ran.Go})
	require.Equal(t, runtime.NumCPU(), ran.Machine.Cores)
	for _, name := range []string{"report.md", results.PageFile} {
		text, err := os.ReadFile(results.Dir(r.config.Out + "/t").Path(name))
		require.NoError(t, err)
		for _, want := range []string{"CONNECTIONS=4", "0123456789ab", strings.TrimPrefix(runtime.Version(), "go")} {
			require.True(t, strings.Contains(string(text), want), "%s does not say %s", name, want)
		}
	}
}
