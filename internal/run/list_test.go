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
		_, err := Merge(filepath.Join(r.config.Out, "latest"), out, 0, &bytes.Buffer{}, report.Look{}, ci.Targets{})
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
