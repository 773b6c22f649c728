package capsule

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/regularfile"
)

func TestTheLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/capsule.md")
	require.NoError(t, err)
	for _, row := range []string{
		fmt.Sprintf("| %d GiB per file", int64(mostFile)>>30),
		fmt.Sprintf("| %d MiB for a `verdict.json`", int64(regularfile.Verdict)>>20),
		fmt.Sprintf("| %d MiB for `capsule.json`", mostContents>>20),
		fmt.Sprintf("| %d GiB for all files", int64(mostBytes)>>30),
		fmt.Sprintf("more than %d times its size", mostRatio),
	} {
		require.Contains(t, string(page), row)
	}
}
