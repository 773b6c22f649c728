package run

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
)

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
