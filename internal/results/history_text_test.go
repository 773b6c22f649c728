package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// For a suite with responses, the figures count chunks, although the service description may call the events messages.
func TestFiguresOfResponsesCountChunks(t *testing.T) {
	t.Parallel()
	r := new(Entry)
	r.Verdict = &verdict.Verdict{Responses: new(verdict.Responses)}
	r.Verdict.Messages.Expected, r.Verdict.Messages.Received = 80, 79
	require.Equal(t, "79 of 80 chunks received", r.figures()[0])
}

func TestFiguresOmitUnknownValuesAndRepeatedUnits(t *testing.T) {
	t.Parallel()
	r := new(Entry)
	r.Verdict = &verdict.Verdict{Verdict: verdict.Invalid}
	r.Verdict.Metrics = []verdict.Metric{{Name: "peak responses/s", Unit: "requests/s", Value: 3000}, {Name: "mean", Unit: "ms", Value: 2}}
	require.Equal(t, []string{"peak responses/s 3,000", "mean 2 ms"}, r.figures(), "no stream opened, and no process was sampled")
}

func TestUnreadableIndexNamesItsCause(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, nil)
	require.NoError(t, os.Mkdir(filepath.Join(out, HistoryFile), 0o700))
	err := WriteHistory(out)
	require.ErrorContains(t, err, "not a regular file; remove it")
	require.NotContains(t, err.Error(), "was not written by")
}

func TestPairListsChanges(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	first := writeRun(t, out, 9, nil)
	second := writeRun(t, out, 10, func(v *verdict.Verdict) {
		v.Verdict, v.Messages.Missed, v.Plan.NoopInterval = verdict.Fail, 3, 30
	})
	p, err := ReadPair(string(first), string(second)+"/")
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, p.Text(&b))
	output := b.String()
	require.Contains(t, output, "new          run-010, 2023-11-15 08:13:20 UTC: fail\n             soak: 1,200 streams, 1 h, a noop every 30 s, 2 runners\n             noops missed 3\n")
	require.Contains(t, output, "changed      soak commit-0 → commit-1\n             noop_interval_s 15 → 30\n")
	require.Regexp(t, `noops missed +0 +3\n`, output)
	require.Regexp(t, `lateness p99 +20\.3 ms +20\.2 ms\n`, output)
	require.NotContains(t, output, "noops duplicated")
	require.Contains(t, output, "The runs have different plans")

	require.NoError(t, os.Mkdir(filepath.Join(out, "others"), 0o700))
	writeAllStates(t, filepath.Join(out, "others"))
	_, err = ReadPair(string(first), filepath.Join(out, "others", "run-004"))
	require.ErrorContains(t, err, "run-004 is damaged: its verdict.json cannot be read")
}
