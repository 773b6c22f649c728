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
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A run reports its verdict to CI, and a merge reports the same.
func TestVerdictIsReportedToCI(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	file := filepath.Join(t.TempDir(), "soak.xml")
	outcome, err := reportToCI(ci.Targets{JUnit: file}, &bytes.Buffer{}, func(reporter *ci.Reporter) (verdict.Outcome, error) {
		r.release()
		s := r.session(r.config)
		s.ci = reporter
		return s.run(r.graceful, r.force)
	})
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)
	assert.Contains(t, readFile(t, file), `name="noops missed"`)

	require.NoError(t, os.Remove(file))
	outcome, err = Merge(string(r.dir()), r.config.Out, 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Targets{JUnit: file})
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, outcome)
	assert.Contains(t, readFile(t, file), `<property name="verdict" value="pass">`)
}

func TestMissingVerdictIsReportedToCI(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "soak.xml")
	_, err := Merge(t.TempDir(), "unused", 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Targets{JUnit: file})
	require.ErrorContains(t, err, "it is not a folder of a run")
	assert.Contains(t, readFile(t, file), "it is not a folder of a run")

	c := newRig(t, "").config
	c.CI = ci.Targets{JUnit: file}
	c.On = "moon"
	_, err = Run(t.Context(), c)
	require.ErrorAs(t, err, &UsageError{})
	assert.Contains(t, readFile(t, file), "got &#34;moon&#34;")

	c.CI.JUnit = filepath.Join(t.TempDir(), "gone", "soak.xml")
	_, err = Run(t.Context(), c)
	require.ErrorAs(t, err, &UsageError{})
	require.ErrorContains(t, err, "--junit must be a file in an existing folder, got ")
}

// A report that cannot be written, for example because the disk is full, does not lose the verdict.
func TestVerdictWithUnwritableReportsIsReportedToCI(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.runLocally(t)
	d := r.dir()
	require.NoError(t, os.Remove(d.Path(results.PageFile)))
	require.NoError(t, os.MkdirAll(filepath.Join(d.Path(results.PageFile), "in the way"), 0o700))
	_, err := Merge(string(d), r.config.Out, 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Targets{})
	require.ErrorContains(t, err, "the verdict is pass, but not all of its reports were written: ")
	require.ErrorContains(t, err, "`soak report "+string(d))
}

func TestPipesOfRunnersAreRemovedIfTheVerdictFails(t *testing.T) {
	t.Parallel()
	d := &local{session: &session{dir: results.Dir(t.TempDir())}}
	d.Plan.Runners = 1
	pipe := runners.PipePath(string(d.dir), 1)
	require.NoError(t, os.WriteFile(pipe, nil, 0o600))
	_, err := d.judge(t.Context(), t.Context())
	require.ErrorContains(t, err, "it is not a folder of a run")
	require.NoFileExists(t, pipe)
}

// A list that cannot be written does not change the verdict of a run.
func TestUnwritableListDoesNotFailTheRun(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(path string) error{
		"a page of another program": func(path string) error { return os.WriteFile(path, []byte("<h1>mine</h1>"), 0o600) },
		"a folder":                  func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "")
			require.NoError(t, fail(filepath.Join(r.config.Out, results.HistoryFile)))
			outcome, _ := r.runLocally(t)
			assert.Equal(t, verdict.Pass, outcome)
			assert.False(t, results.HasHistory(r.config.Out))
		})
	}
}

// A merge lists its run in OUT, and in a folder with a list; it writes no list into other folders.
func TestMergeWritesOnlyToItsFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.runLocally(t)
	page := filepath.Join(r.config.Out, results.HistoryFile)
	require.NoError(t, os.Remove(page))
	merge := func(out string) {
		_, err := Merge(filepath.Join(r.config.Out, "latest"), out, 0, &bytes.Buffer{}, report.TerminalOptions{}, ci.Targets{})
		require.NoError(t, err)
	}
	merge("elsewhere")
	require.NoFileExists(t, page)
	merge(r.config.Out)
	require.FileExists(t, page)

	before := readFile(t, page)
	require.NoError(t, os.RemoveAll(r.dir().Path(results.PageFile)))
	require.NoError(t, results.WriteHistory(r.config.Out))
	merge("elsewhere")
	require.Equal(t, before, readFile(t, page), "the existing list is updated")
}
