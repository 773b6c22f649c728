package compose

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The images are built only from the folders that the Dockerfile copies, so the Dockerfile must copy each new
// dependency.
func TestDockerfileCopiesNeededFolders(t *testing.T) {
	t.Parallel()
	const module = "github.com/sse-soak/sse-soak/"
	dockerfile := read(t, "..", "..", "backend", "Dockerfile")
	out, err := exec.Command("go", "list", "-deps", "../../backend", "../../cmd/reference", "../../nginx/nginxconf").CombinedOutput()
	require.NoError(t, err, "%s", out)
	found := 0
	for path := range strings.Lines(string(out)) {
		folder, local := strings.CutPrefix(strings.TrimSpace(path), module)
		if !local {
			continue
		}
		found++
		isCopied := false
		for line := range strings.Lines(dockerfile) {
			fields := strings.Fields(line)
			isCopied = isCopied || len(fields) == 3 && fields[0] == "COPY" && strings.HasPrefix(folder+"/", fields[1])
		}
		require.True(t, isCopied, "backend/Dockerfile does not copy %s", folder)
	}
	require.Greater(t, found, 2)
}
