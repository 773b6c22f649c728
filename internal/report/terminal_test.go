package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTerminalCountsOmittedWarnings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 70)
	for _, c := range []struct {
		warnings []string
		last     string
	}{
		{[]string{"a", "b"}, "warning: b"},
		{[]string{"a", long}, "1 more warning is in report.txt"},
		{[]string{long, "b"}, "2 warnings are in report.txt"},
	} {
		var b strings.Builder
		out := NewText(&b, false)
		out.warnings(c.warnings)
		require.NoError(t, out.Flush())
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		require.Equal(t, c.last, lines[len(lines)-1])
	}
}
