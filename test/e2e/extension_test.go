//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestK6HasTheExtension(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "k6"), "version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"k6/x/handshake [js]", "k6/x/requests [js]", "k6/x/soak [js]", "soak [output]", "k6/x/sse [js]"} {
		require.Contains(t, string(out), ", "+name)
	}
}
