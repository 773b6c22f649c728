package results

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newUnfinished returns the folder of a run that `soak run` started.
func newUnfinished(t *testing.T) Dir {
	t.Helper()
	d, err := Create(t.TempDir(), "t")
	require.NoError(t, err)
	p := testPlan()
	p.RunID = "r"
	require.NoError(t, d.WriteManifest(0, NewManifest(0, p.RunID, true, &Run{Circumstances: report.Circumstances{Version: "v1", Command: []string{"soak", "run"}}})))
	require.NoError(t, d.WriteJSON(PlanFile, p))
	require.NoError(t, d.WriteJSON(RunFile, Run{Circumstances: report.Circumstances{OneClock: true}, Failures: []verdict.Failure{{Text: "the backend died"}}}))
	put(t, d, LedgerFile, entry(0, 15)+entry(1, 16))
	put(t, d, ResourcesFile, `{"unix_s":1}`+"\n")
	for i := 1; i <= 2; i++ {
		s := testShard(p, i)
		s.Runner.RunID = p.RunID
		require.NoError(t, shard.Write(d.Path(filepath.Join(ShardsDir, shard.FileName(s.Runner))), s))
	}
	require.NoError(t, d.Seal(0))
	return d
}

// A run that was killed before it wrote run.json still has its command.
func TestKilledRunHasRunInfo(t *testing.T) {
	t.Parallel()
	d := newUnfinished(t)
	require.NoError(t, os.Remove(d.Path(RunFile)))
	v := judge(t, d, verdict.Invalid, "")
	require.NotNil(t, v.RunInfo)
	require.Equal(t, []string{"soak", "run"}, v.RunInfo.Command)
}

func TestMissingEvidenceIsInvalid(t *testing.T) {
	t.Parallel()
	judge(t, newUnfinished(t), verdict.Fail, "")
	for name, removed := range map[string][]string{
		"run.json":               {RunFile},
		"backend-ledger.ndjson":  {LedgerFile},
		"run.json and":           {RunFile, LedgerFile},
		"resources.ndjson":       {ResourcesFile},
		"plan.json":              {PlanFile},
		"manifest.json":          {ManifestFile},
		"manifest.json and plan": {ManifestFile, PlanFile},
		"manifest.json, all":     {ManifestFile, PlanFile, RunFile, LedgerFile, ResourcesFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newUnfinished(t)
			for _, file := range removed {
				require.NoError(t, os.Remove(d.Path(file)))
			}
			judge(t, d, verdict.Invalid, removed[0])
		})
	}
}

func TestPartsHaveTheirOwnManifests(t *testing.T) {
	t.Parallel()
	parts := func(t *testing.T) Dir {
		t.Helper()
		d := newParts(t)
		for i := 1; i <= 2; i++ {
			id := []string{"one", "two"}[i-1]
			require.NoError(t, d.WriteManifest(i, NewManifest(i, id, false, &Run{})))
			require.NoError(t, d.Seal(i))
			path := d.Path(filepath.Join(ShardsDir, shard.FileName(shard.Runner{Index: i})))
			s, err := shard.ReadFile(path)
			require.NoError(t, err)
			s.Runner.RunID = id
			require.NoError(t, shard.Write(path, s))
		}
		return d
	}
	judge(t, parts(t), verdict.Pass, "")
	for name, c := range map[string]struct {
		edit func(t *testing.T, d Dir)
		want string
	}{
		"the second part has no record": {func(t *testing.T, d Dir) { require.NoError(t, os.Remove(d.Path(RunName(2)))) }, "run-2.json is missing"},
		"both ledgers are missing": {func(t *testing.T, d Dir) {
			require.NoError(t, errors.Join(os.Remove(d.Path(LedgerName(1))), os.Remove(d.Path(LedgerName(2)))))
		}, "backend-ledger-1.ndjson is missing"},
		"the second part was restarted": {func(t *testing.T, d Dir) {
			require.NoError(t, d.WriteManifest(2, NewManifest(2, "three", false, &Run{})))
		}, "is of another run than manifest-2.json"},
		"the second part has no manifest": {func(t *testing.T, d Dir) { require.NoError(t, os.Remove(d.Path(ManifestName(2)))) }, "merge its whole folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parts(t)
			c.edit(t, d)
			judge(t, d, verdict.Invalid, c.want)
		})
	}
}

func TestMissingRound(t *testing.T) {
	t.Parallel()
	d := newUnfinished(t)
	round, err := d.Round(1)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(string(round)))
	judge(t, d, verdict.Invalid, "round-02 is missing")
}

func TestPartStartsOnce(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	d, err := Join(out, "t", 1)
	require.NoError(t, err)
	_, err = Join(out, "t", 2)
	require.NoError(t, err)
	s := testShard(testPlan(), 1)
	s.Runner.Process = shard.NewProcess()
	require.NoError(t, shard.Write(d.Path(filepath.Join(ShardsDir, shard.FileName(s.Runner))), s))
	_, err = Join(out, "t", 1)
	require.ErrorContains(t, err, "runner-1-")
	_, err = Join(out, "t", 2)
	require.NoError(t, err)
}
