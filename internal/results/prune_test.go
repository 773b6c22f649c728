package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// reasonsOf returns, by run, the reason why pruning keeps it; "" for a run to remove.
func reasonsOf(list []Decision) map[string]string {
	out := map[string]string{}
	for _, d := range list {
		if out[d.Name] = d.Reason; d.Remove {
			out[d.Name] = ""
		}
	}
	return out
}

func TestPruneKeepsReferencedRuns(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeAllStates(t, out) // 1 pass, 2 fail, 3 invalid, 4 damaged, 5 unfinished
	require.NoError(t, os.Remove(filepath.Join(out, "latest")))
	require.NoError(t, os.RemoveAll(filepath.Join(out, "run-005")))
	require.NoError(t, os.MkdirAll(filepath.Join(out, "run-000", ShardsDir), 0o700)) // unfinished
	writeRun(t, out, 6, func(v *verdict.Verdict) {
		v.Verdict, v.Findings = verdict.Invalid, []verdict.Finding{{Kind: "lost", ID: "soak-1"}}
	})
	writeRun(t, out, 7, nil)
	writeRun(t, out, 8, nil)
	writeRun(t, out, 9, nil)
	newest := writeRun(t, out, 10, nil)
	require.NoError(t, newest.WriteJSON(BaselineFile, map[string]string{"folder": "run-007"}))
	require.NoError(t, os.Symlink("run-008", filepath.Join(out, "latest")))

	h := read(t, out)
	decisions, err := h.Prune(2)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"run-000": "one of the 2 newest runs", // its only time is the modification time of its folder
		"run-010": "one of the 2 newest runs",
		"run-009": "", "run-003": "", "run-001": "",
		"run-008": "latest links to it",
		"run-007": "it is the baseline of run-010",
		"run-006": "it is invalid, but found faults",
		"run-004": "its verdict cannot be read, so it may have failed",
		"run-002": "it failed",
	}, reasonsOf(decisions))
	require.DirExists(t, filepath.Join(out, "run-009"), "a decision must not remove the folder")

	require.NoError(t, os.Mkdir(filepath.Join(out, removedPrefix+"before"), 0o700))
	require.NoError(t, h.Remove(decisions))
	for name, reason := range reasonsOf(decisions) {
		if reason == "" {
			require.NoDirExists(t, filepath.Join(out, name))
		} else {
			require.DirExists(t, filepath.Join(out, name))
		}
	}
	require.NoDirExists(t, filepath.Join(out, removedPrefix+"before"))
	require.FileExists(t, filepath.Join(out, "notes.txt"))
	require.DirExists(t, filepath.Join(out, "campaign"))
}

// A run in progress may be older than finished ones.
func TestPruneKeepsActiveRuns(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 500_000, nil) // in the far future
	require.NoError(t, os.MkdirAll(filepath.Join(out, "running", ShardsDir), 0o700))
	decisions, err := read(t, out).Prune(1)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"run-500000": "the newest run", "running": "it has no verdict, and may be running"}, reasonsOf(decisions))
}

// An unknown verdict, written by a newer soak or by a user, may be a failure.
func TestPruneKeepsUnknownVerdicts(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, func(v *verdict.Verdict) { v.Verdict = "" })
	writeRun(t, out, 2, func(v *verdict.Verdict) { v.Verdict = "aborted" })
	writeRun(t, out, 3, nil)
	decisions, err := read(t, out).Prune(1)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"run-003": "the newest run",
		"run-002": `its verdict, "aborted", is unknown, so it may have failed`,
		"run-001": `its verdict, "", is unknown, so it may have failed`,
	}, reasonsOf(decisions))
}

func TestPruneFailsOnADamagedBaseline(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, nil)
	d := writeRun(t, out, 2, nil)
	require.NoError(t, os.WriteFile(d.Path(BaselineFile), []byte("{"), 0o600))
	_, err := read(t, out).Prune(1)
	require.ErrorContains(t, err, "nothing is removed")
}

func TestRemoveReportsRunsThatItCannotRemove(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, nil)
	writeRun(t, out, 2, nil)
	h := read(t, out)
	decisions, err := h.Prune(1)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(out, "run-001"))) // by another program
	require.ErrorContains(t, h.Remove(decisions), "remove run-001")
	require.Equal(t, map[string]string{"run-002": "the newest run", "run-001": "it cannot be removed"}, reasonsOf(decisions))
}
