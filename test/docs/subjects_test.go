package docs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func subjects(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join(root, ".ci/subjects"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), script, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestCommitSubjects(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "clone")
	gitIn(t, ".", "init", "--quiet", "--initial-branch=main", dir)
	commit := func(subject string) {
		gitIn(t, dir, "commit", "--quiet", "--allow-empty", "--message", subject)
	}
	commit("An old subject")
	gitIn(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD")
	commit("ledger: count gaps after a reconnect")
	commit("ledger,shard: read the rest of a file")
	commit(`Revert "An old subject"`)
	out, err := subjects(t, dir)
	require.NoError(t, err, out)

	findings := []string{"Count gaps", "ledger: Count gaps", "ledger: fixed a gap", "ledger: count gaps.", "ledger, shard: read the rest of a file", "ledger: " + strings.Repeat("x", 53)}
	for _, subject := range findings {
		commit(subject)
	}
	out, err = subjects(t, dir)
	require.Error(t, err)
	require.Equal(t, len(findings), strings.Count(out, "the subject of a commit"), out)

	commit("ledger: count gaps")
	out, err = subjects(t, dir, "0000000000000000000000000000000000000000")
	require.NoError(t, err, "with an unknown base, as in a shallow clone, only the last commit must be checked: %s", out)

	shallow := filepath.Join(t.TempDir(), "shallow")
	gitIn(t, ".", "clone", "--quiet", "--depth=1", "file://"+dir, shallow)
	out, err = subjects(t, shallow)
	require.NoError(t, err, out)

	out, err = subjects(t, t.TempDir())
	require.NoError(t, err, "outside a clone: %s", out)
}
