package verdict

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A verdict depends only on files, so no package that it imports may connect to a cloud.
func TestVerdictNeedsNoCloud(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(out)) {
		for _, sdk := range []string{"gocloud.dev", "github.com/aws/", "cloud.google.com/", "github.com/Azure/"} {
			require.False(t, strings.HasPrefix(pkg, sdk), pkg)
		}
	}
}
