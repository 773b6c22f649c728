package run

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The output and the report state how the result was produced: the command with its variables, commit, versions and
// machine.
func TestRunDescribesItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, ends)
	r.config.Commit, r.config.Version, r.config.Variables = "0123456789ab+dirty", "v1.2.3", []string{"CONNECTIONS=4", "PUBLISH_TOKEN=hunter2"}
	r.config.Live = "1"
	outcome, record, err := driveLocal(t, r)
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)
	output := r.config.Stdout.(*bytes.Buffer).String()
	require.Regexp(t, "^soak t: 4 streams for 15 s, a noop every 1 s, 2 runners\ntrying one stream of "+r.service.URL+"\ntarget "+r.service.URL+"\nlive +http://127\\.0\\.0\\.1:\\d+/\n", output)
	require.Contains(t, output, "report.html")

	info := r.verdict(t).RunInfo
	require.NotNil(t, info)
	require.Equal(t, []string{"env", "CONNECTIONS=4", "PUBLISH_TOKEN=[redacted]", os.Args[0]}, info.Command[:4])
	require.Equal(t, info.Command, record.Command, "run.json must not contain the secret either")
	require.Equal(t, []string{"0123456789ab+dirty", "v1.2.3", runtime.Version()}, []string{info.Commit, info.Soak, info.Go})
	require.Equal(t, runtime.NumCPU(), info.Machine.Cores)
	for _, name := range []string{"report.md", results.PageFile} {
		text := readFile(t, r.dir().Path(name))
		for _, want := range []string{"CONNECTIONS=4", "0123456789ab", strings.TrimPrefix(runtime.Version(), "go")} {
			require.True(t, strings.Contains(text, want), "%s does not contain %s", name, want)
		}
	}
}

func TestLivePageAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "0": "", "false": "", "1": "127.0.0.1:0", "true": "127.0.0.1:0", ":8080": ":8080", "10.0.0.1:80": "10.0.0.1:80"} {
		require.Equal(t, want, liveAddress(text), text)
	}
}

func TestUnreachableModelHasAReason(t *testing.T) {
	t.Parallel()
	s := &session{Config: Config{Settings: map[string]string{"ABANDON": "1", "MODEL_URL": "http://127.0.0.1:1"}}, targets: target.Targets{target.Remote("http://127.0.0.1:1", "")}, watch: new(live.Watch)}
	s.saveModelLedger(t.Context())
	require.Equal(t, []string{"read the ledger of the model at http://127.0.0.1:1: the response has no ledger, or there was no response, so the times at which the model cancelled abandoned requests are unknown"}, s.record.Warnings)
}

func TestActionsWarnInParallel(t *testing.T) {
	t.Parallel()
	s := &session{watch: new(live.Watch)}
	var actions sync.WaitGroup
	for range 50 {
		actions.Go(func() { s.warn("x") })
	}
	actions.Wait()
	require.Len(t, s.record.Warnings, 50)
}

// A file that cannot be read is not reported as one that cannot be uploaded.
func TestUndeliveredEvidenceNamesTheCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blocked func(s *session) string // path of the manifest, where the test creates a folder
		want    string
	}{
		"not readable": {func(s *session) string { return s.dir.Path(results.ManifestName(0)) }, "read the evidence of this machine: "},
		"not stored": {func(s *session) string { return results.Dir(s.location).Path(results.ManifestName(0)) },
			"upload manifest.json of this machine: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSession(Config{})
			s.Shards, s.dir = t.TempDir(), results.Dir(t.TempDir())
			s.location = s.Shards
			require.NoError(t, os.WriteFile(s.dir.Path(results.PlanFile), []byte("{}"), 0o600))
			blocked := c.blocked(s)
			if name == "not stored" {
				require.NoError(t, os.WriteFile(s.dir.Path(results.ManifestName(0)), []byte("{}"), 0o600))
			}
			require.NoError(t, os.Mkdir(blocked, 0o700))
			require.ErrorContains(t, s.deliver(t.Context(), t.Context()), c.want)
		})
	}
}
