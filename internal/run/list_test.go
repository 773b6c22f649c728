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

func TestRunIsListed(t *testing.T) {
	t.Parallel()
	withDrivers(t, func(t *testing.T, r *rig, drive driverOfRig) {
		r.release()
		_, _, err := drive(t, r)
		require.NoError(t, err)
		page, err := os.ReadFile(filepath.Join(r.config.Out, results.HistoryFile))
		require.NoError(t, err)
		assert.Contains(t, string(page), `href="./t/report.html"`)
	}, "local", "local with a bucket", "kubernetes")
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
			r.release()
			path := filepath.Join(r.config.Out, results.HistoryFile)
			require.NoError(t, fail(path))
			outcome, _, err := drivers["local"](t, r)
			require.NoError(t, err)
			assert.Equal(t, verdict.Pass, outcome)
			assert.False(t, results.HasHistory(r.config.Out))
		})
	}
}

// A merge lists its run in OUT, and in a folder with a list; it writes no list into other folders.
func TestMergeWritesOnlyToItsFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.release()
	_, _, err := drivers["local"](t, r)
	require.NoError(t, err)
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

	before, err := os.ReadFile(page)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(r.config.Out, "t", results.PageFile)))
	require.NoError(t, results.WriteHistory(r.config.Out))
	merge("elsewhere")
	after, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the existing list is updated")
}
