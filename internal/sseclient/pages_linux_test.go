package sseclient

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const smaps = `00400000-01b47000 r-xp 00000000 fe:00 1315 /bin/k6
Size:              23836 kB
Anonymous:             0 kB
01b47000-01b48000 r--p 01747000 fe:00 1315 /bin/k6
Anonymous:             4 kB
01b48000-04b48000 r--p 01748000 fe:00 1315 /bin/my k6
Anonymous:             0 kB
04b48000-04c98000 rw-p 04747000 fe:00 1315 /bin/k6
Anonymous:             0 kB
7f21ac000000-7f21ac021000 r--p 00000000 00:00 0
Anonymous:             0 kB
7ffd3c5c7000-7ffd3c5c9000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
`

// Relocated, anonymous and writable pages may have content that no file has.
func TestOnlyUnchangedPagesAreReleased(t *testing.T) {
	t.Parallel()
	require.Equal(t, []mapping{{0x400000, 0x1b47000}, {0x1b48000, 0x4b48000}}, slices.Collect(cleanMappings(strings.NewReader(smaps))))
}

// The process must continue without the released pages.
func TestProgramPagesAreReleased(t *testing.T) {
	filePages := func() (kb int) {
		status, err := os.ReadFile("/proc/self/status")
		require.NoError(t, err)
		_, size, _ := strings.Cut(string(status), "RssFile:")
		_, err = fmt.Sscan(size, &kb)
		require.NoError(t, err)
		return kb
	}
	start := filePages()
	releasePages()
	require.Less(t, filePages(), start/2)
}
