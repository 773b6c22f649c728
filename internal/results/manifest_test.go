package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newFailedRun returns the complete folder of a run of `soak run` in which the backend died. There is no verdict yet.
func newFailedRun(t *testing.T) Dir {
	t.Helper()
	d, err := Create(t.TempDir(), "t")
	require.NoError(t, err)
	p := testPlan()
	p.RunID = "r"
	require.NoError(t, d.WriteManifest(0, NewManifest(0, p.RunID, true, &RunRecord{Provenance: report.Provenance{Version: "v1", Command: []string{"soak", "run"}}})))
	require.NoError(t, d.WriteJSON(PlanFile, p))
	require.NoError(t, d.WriteJSON(RunFile, RunRecord{Provenance: report.Provenance{OneClock: true}, Failures: []verdict.TargetFailure{{Text: "the backend died"}}}))
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

// The verdict of a run that was killed before it wrote run.json still has the command.
func TestKilledRunHasRunInfo(t *testing.T) {
	t.Parallel()
	d := newFailedRun(t)
	require.NoError(t, os.Remove(d.Path(RunFile)))
	v := judge(t, d, verdict.Invalid, "")
	require.NotNil(t, v.RunInfo)
	require.Equal(t, []string{"soak", "run"}, v.RunInfo.Command)
}

func TestMissingEvidenceIsInvalid(t *testing.T) {
	t.Parallel()
	judge(t, newFailedRun(t), verdict.Fail, "")
	for name, removed := range map[string][]string{
		"run.json":               {RunFile},
		"backend-ledger.ndjson":  {LedgerFile},
		"run.json and ledger":    {RunFile, LedgerFile},
		"resources.ndjson":       {ResourcesFile},
		"plan.json":              {PlanFile},
		"manifest.json":          {ManifestFile},
		"manifest.json and plan": {ManifestFile, PlanFile},
		"all except the shards":  {ManifestFile, PlanFile, RunFile, LedgerFile, ResourcesFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFailedRun(t)
			for _, file := range removed {
				require.NoError(t, os.Remove(d.Path(file)))
			}
			judge(t, d, verdict.Invalid, removed[0])
		})
	}
}

// If a manifest did not list the plan or run.json, a missing file, and a failure in it, would go unnoticed.
func TestManifestRequiresPlanAndRunFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{PlanFile, RunFile} {
		d := newFailedRun(t)
		m, _, err := d.manifest(0)
		require.NoError(t, err)
		m.Needs = slices.DeleteFunc(m.Needs, func(need string) bool { return need == name })
		require.NoError(t, d.WriteManifest(0, m))
		require.NoError(t, os.Remove(d.Path(name)))
		judge(t, d, verdict.Invalid, "manifest.json must list plan.json and run.json, got "+strings.Join(m.Needs, ", "))
	}
}

func TestPartsHaveTheirOwnManifests(t *testing.T) {
	t.Parallel()
	parts := func(t *testing.T) Dir {
		t.Helper()
		d := newParts(t)
		for i := 1; i <= 2; i++ {
			id := []string{"one", "two"}[i-1]
			require.NoError(t, d.WriteManifest(i, NewManifest(i, id, false, &RunRecord{})))
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
			require.NoError(t, d.WriteManifest(2, NewManifest(2, "three", false, &RunRecord{})))
		}, "belongs to a different run than manifest-2.json"},
		"the second part has no manifest": {func(t *testing.T, d Dir) { require.NoError(t, os.Remove(d.Path(ManifestName(2)))) }, "merge the whole folder of that run"},
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
	d := newFailedRun(t)
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
	s.Runner.Process = shard.NewID()
	require.NoError(t, shard.Write(d.Path(filepath.Join(ShardsDir, shard.FileName(s.Runner))), s))
	_, err = Join(out, "t", 1)
	require.ErrorContains(t, err, "runner-1-")
	_, err = Join(out, "t", 2)
	require.NoError(t, err)
}

// newParts returns a run of two machines, each with its own shard and its own part of the server's ledger.
func newParts(t *testing.T) Dir {
	t.Helper()
	d := newPassedRun(t)
	require.NoError(t, os.Remove(d.Path(RunFile)))
	for i := 1; i <= 2; i++ {
		require.NoError(t, d.WriteJSON(RunName(i), RunRecord{}))
	}
	// Each part reads the ledger after the end of its own streams, so entries of other streams are missing or
	// incomplete.
	put(t, d, LedgerName(1), entry(0, 15)+entry(1, 7))
	put(t, d, LedgerName(2), entry(1, 15)+entry(0, 3))
	return d
}

func entry(connection, last int) string {
	return fmt.Sprintf(`{"id":"d-%d","first":1,"last":%d,"sent":%[2]d}`+"\n", connection, last)
}

func TestPartsMakeOneVerdict(t *testing.T) {
	t.Parallel()
	v := judge(t, newParts(t), verdict.Pass, "")
	require.True(t, v.Server.Known)
	require.EqualValues(t, 30, v.Server.Sent)
}

func TestServerLedgerOfEachPart(t *testing.T) {
	t.Parallel()
	d := newParts(t)
	put(t, d, LedgerName(2), entry(1, 16)+entry(0, 15))
	require.Contains(t, judge(t, d, verdict.Fail, "").Reasons[0], "d-1 missed noop 16")
}

func TestPartsNeedAllServerLedgers(t *testing.T) {
	t.Parallel()
	d := newParts(t)
	require.NoError(t, os.Remove(d.Path(LedgerName(2))))
	judge(t, d, verdict.Invalid, "1 of 2 runners stored the backend's ledger, so the last noops cannot be checked")
}

func TestWarningsNameTheirPart(t *testing.T) {
	t.Parallel()
	d := newParts(t)
	require.NoError(t, d.WriteJSON(RunName(2), RunRecord{Problems: []string{"a problem"}, Warnings: []string{"a warning"}}))
	v := judge(t, d, verdict.Invalid, "runner 2: a problem")
	require.Contains(t, v.Warnings, "runner 2: a warning")
	put(t, d, RunName(1), "[")
	judge(t, d, verdict.Invalid, "run-1.json")
}

// The machine counters from Prometheus are evidence: a merge reads them again. A missing or damaged file makes a run
// invalid.
func TestMachinesFromPrometheus(t *testing.T) {
	t.Parallel()
	w := machine.NewRemote("stack", time.Second)
	w.Add(time.Unix(100, 0), machine.Reading{"pps_allowance_exceeded": 1})
	w.Add(time.Unix(105, 0), machine.Reading{"pps_allowance_exceeded": 15})
	newRun := func() Dir {
		d := newFailedRun(t)
		require.NoError(t, d.WriteJSON(MachinesFile, []*machine.Record{w.Record()}))
		require.NoError(t, d.Seal(0))
		return d
	}
	v := judge(t, newRun(), verdict.Fail, "")
	require.Contains(t, strings.Join(v.Warnings, "\n"), "AWS held back or dropped 14 packets of stack between 00:01:40 and 00:01:45 UTC: pps_allowance_exceeded")
	require.Len(t, v.Machines, 1)

	for name, c := range map[string]struct {
		text string // "" removes the file
		want string
	}{
		"missing":   {"", "machines.json is missing"},
		"truncated": {"[", "machines.json"},
		"null":      {"[null]", "an empty machine"},
		"hostile":   {`[{"counters":[{"name":"steal","increase":-1}]}]`, "impossible counter steal of the machine: -1"},
	} {
		t.Log(name)
		d := newRun()
		put(t, d, MachinesFile, c.text)
		if c.text == "" {
			require.NoError(t, os.Remove(d.Path(MachinesFile)))
		}
		judge(t, d, verdict.Invalid, c.want)
	}
}
