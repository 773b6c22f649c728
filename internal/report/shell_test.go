package report

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// `make soak` was shown as `--backend-url --prefix --out results`, which is another command.
func TestShellQuotesWhatAShellWouldRead(t *testing.T) {
	t.Parallel()
	args := []string{"printf", "%s\\n", "--backend-url", "", "--prefix", "a b", "it's", "$HOME", "s3://b/p?region=x&profile=y", "*", "é"}
	shown := Shell(args...)
	require.Contains(t, shown, "--backend-url '' --prefix 'a b'")
	out, err := exec.Command("/bin/sh", "-c", shown).Output()
	require.NoError(t, err)
	require.Equal(t, args[2:], strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"))
	require.Equal(t, "bin/soak run --out=results", Shell("bin/soak", "run", "--out=results"))
}
