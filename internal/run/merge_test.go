package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A merge lists its run in OUT, and in another folder only if that folder already has a list. It reports the same
// verdict to CI as the run. A list or a report that cannot be written does not change the verdict.
func TestRunAndMergeReportTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, ends)
	file := filepath.Join(t.TempDir(), "soak.xml")
	outcome, err := reportToCI(ci.Systems{JUnit: file}, &bytes.Buffer{}, func(reporter *ci.Reporter) (verdict.Outcome, error) {
		s := r.session(r.config)
		s.ci = reporter
		return s.run(r.graceful, r.force)
	})
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)
	assert.Contains(t, readFile(t, file), `name="noops missed"`)
	page := filepath.Join(r.config.Out, results.HistoryFile)
	assert.Contains(t, readFile(t, page), `href="./t/report.html"`)

	merge := func(out string) error {
		outcome, err := Merge(filepath.Join(r.config.Out, "latest"), out, 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Systems{JUnit: file})
		assert.Equal(t, err == nil, outcome == verdict.Pass)
		return err
	}
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Remove(page))
	require.NoError(t, merge("elsewhere"))
	assert.Contains(t, readFile(t, file), `<property name="verdict" value="pass">`)
	require.NoFileExists(t, page)
	require.NoError(t, merge(r.config.Out))
	before := readFile(t, page)
	require.NoError(t, os.RemoveAll(r.dir().Path(results.PageFile)))
	require.NoError(t, results.WriteHistory(r.config.Out))
	require.NoError(t, merge("elsewhere"))
	require.Equal(t, before, readFile(t, page), "the existing list must be updated")

	require.NoError(t, os.WriteFile(page, []byte("<h1>mine</h1>"), 0o600))
	require.NoError(t, merge(r.config.Out))
	require.Equal(t, "<h1>mine</h1>", readFile(t, page), "the page of another program must stay")

	d := r.dir()
	require.NoError(t, os.Remove(d.Path(results.PageFile)))
	require.NoError(t, os.MkdirAll(filepath.Join(d.Path(results.PageFile), "in the way"), 0o700))
	err = merge(r.config.Out)
	require.ErrorContains(t, err, "the verdict is pass, but not all of its reports were written: ")
	require.ErrorContains(t, err, "`soak report "+filepath.Join(r.config.Out, "latest"))
}

func TestMissingVerdictIsReportedToCI(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "soak.xml")
	_, err := Merge(t.TempDir(), "unused", 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Systems{JUnit: file})
	require.ErrorContains(t, err, "it is not the folder of a run")
	assert.Contains(t, readFile(t, file), "it is not the folder of a run")

	c := testConfig("http://h")
	c.CI = ci.Systems{JUnit: file}
	c.On = "moon"
	_, err = Run(t.Context(), c)
	require.ErrorAs(t, err, &UsageError{})
	assert.Contains(t, readFile(t, file), "got &#34;moon&#34;")

	c.CI.JUnit = filepath.Join(t.TempDir(), "gone", "soak.xml")
	_, err = Run(t.Context(), c)
	require.ErrorAs(t, err, &UsageError{})
	require.ErrorContains(t, err, "--junit must be a file in an existing folder, got ")
}
