package archive

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

func TestTheLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/report.md")
	require.NoError(t, err)
	for _, row := range []string{
		fmt.Sprintf("| %d GiB per file", int64(maxFile)>>30),
		fmt.Sprintf("| %d MiB for a `verdict.json`", int64(safefile.Verdict)>>20),
		fmt.Sprintf("| %d MiB for `archive.json`", maxContents>>20),
		fmt.Sprintf("| %d GiB for all files", int64(maxBytes)>>30),
		fmt.Sprintf("more than %d times its size", maxRatio),
	} {
		require.Contains(t, string(page), row)
	}
}
