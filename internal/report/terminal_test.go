package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
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

// The number of findings that are not listed follows the listed ones, even if the run is invalid.
func TestFindingsEndWithTheNumberOfOmittedOnes(t *testing.T) {
	t.Parallel()
	const cause, late, more = "the load generator may be the cause", "soak-1 received noop 2 late", "10 more findings"
	v := &verdict.Verdict{Verdict: verdict.Invalid, Reasons: []string{cause, late, more},
		Checks: []verdict.Check{{Severity: verdict.SeverityInconclusive, Reasons: []string{cause, late, more}}}}
	v.Groups = []verdict.FindingGroup{{Text: late, FirstUnix: 1}}
	require.Equal(t, []string{late, more}, findings(v), "the findings must omit the cause, which the sentence of the banner contains")
}

func TestTerminalCountsPassedChecks(t *testing.T) {
	t.Parallel()
	met, unmet := verdict.Check{ID: "a", Pass: true}, verdict.Check{ID: "b"}
	for _, c := range []struct {
		checks []verdict.Check
		want   []string
	}{
		{[]verdict.Check{met}, []string{"1 check passed"}},
		{[]verdict.Check{met, met, unmet}, []string{"2 more checks passed"}},
		{[]verdict.Check{unmet}, nil},
	} {
		section := unmetChecks(&verdict.Verdict{Checks: c.checks})
		require.Equal(t, c.want, section.Notes)
	}
}

func TestTerminalEndsWithTheVerdictInOneLine(t *testing.T) {
	t.Parallel()
	cause := strings.TrimSpace(strings.Repeat("word ", 30))
	var b strings.Builder
	require.NoError(t, Terminal(&b, &verdict.Verdict{Verdict: verdict.Invalid, Reasons: []string{cause}}, TerminalOptions{}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Equal(t, "INVALID: "+cause, lines[len(lines)-1])
}
