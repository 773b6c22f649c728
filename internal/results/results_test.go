package results

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// testPlan returns a plan of two streams.
func testPlan() plan.Plan {
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.Seconds, p.NoopInterval, p.BackendURL = "t", "d-", 2, 20, 1, "http://h"
	return p
}

// testShard returns the shard of one of two runners, each with one stream.
func testShard(p plan.Plan, index int) *shard.Shard {
	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	return &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: h, FirstMessage: h, Lateness: h,
		Runner: shard.Runner{
			TestID: p.TestID, Index: index, Segment: []string{"0:1/2", "1/2:1"}[index-1], State: shard.Finished, StartedUS: 1e15, EndedUS: 1e15 + 2e7,
		},
		Checks: []shard.ScriptCheck{{Name: "Get status was 200", Passes: 1}},
		Connections: []ledger.Record{{
			ID: p.ClientID(index - 1), State: ledger.Completed, Numbered: true, Streams: 1, Attempts: 1, StreamTime: 15 * time.Second, OpenTime: 15 * time.Second, Last: 15,
			Counts: ledger.Counts{Received: 15},
		}},
	}
}

// newPassedRun returns the folder of a run that passes. There is no verdict yet.
func newPassedRun(t *testing.T) Dir {
	t.Helper()
	d, err := Create(t.TempDir(), "t")
	require.NoError(t, err)
	p := testPlan()
	require.NoError(t, d.WriteJSON(PlanFile, p))
	require.NoError(t, d.WriteJSON(RunFile, RunRecord{Provenance: report.Provenance{OneClock: true}}))
	for i := 1; i <= 2; i++ {
		require.NoError(t, shard.Write(d.Path(filepath.Join(ShardsDir, shard.FileName(shard.Runner{Index: i}))), testShard(p, i)))
	}
	return d
}

func put(t *testing.T, d Dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
}

// judge judges a run, requires a verdict with a reason, and writes the reports.
func judge(t *testing.T, d Dir, want verdict.Outcome, reason string, problems ...string) *verdict.Verdict {
	t.Helper()
	v, m, err := d.Judge(problems...)
	require.NoError(t, err)
	require.Equal(t, want, v.Verdict, "%q", v.Reasons)
	require.Contains(t, strings.Join(v.Reasons, "\n"), reason)
	require.NoError(t, d.Report(v, m, ""))
	return v
}

func TestCreate(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "results")
	d, err := Create(out, "one")
	require.NoError(t, err)
	require.DirExists(t, d.Path(ShardsDir))
	_, err = Create(out, "one")
	require.ErrorContains(t, err, "exists already; choose another --testid")
	two, err := Create(out, "two")
	require.NoError(t, err)
	latest, err := filepath.EvalSymlinks(filepath.Join(out, "latest"))
	require.NoError(t, err)
	want, err := filepath.EvalSymlinks(string(two))
	require.NoError(t, err)
	require.Equal(t, want, latest)
	require.NoError(t, os.Remove(filepath.Join(out, "latest")))
	require.NoError(t, os.WriteFile(filepath.Join(out, "latest"), []byte("mine"), 0o600))
	_, err = Create(out, "three")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(out, "latest"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text), "a file of the user must be kept")
	require.NoError(t, os.WriteFile(filepath.Join(out, "file"), nil, 0o600))
	_, err = Create(filepath.Join(out, "file"), "x")
	require.ErrorContains(t, err, "choose another folder with --out")
}

func TestNewTestIDIsUnused(t *testing.T) {
	t.Parallel()
	out, now := t.TempDir(), time.Unix(1_700_000_000, 0)
	require.Equal(t, "20231114-221320", NewTestID(out, now))
	require.NoError(t, os.Mkdir(filepath.Join(out, "20231114-221320"), 0o750))
	require.NoError(t, os.Mkdir(filepath.Join(out, "20231114-221320-2"), 0o750))
	require.Equal(t, "20231114-221320-3", NewTestID(out, now))
}

func TestWriteIsAtomic(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	require.NoError(t, d.WriteJSON("x.json", map[string]int{"a": 1}))
	err := d.Write("x.json", func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return errors.New("disk full")
	})
	require.ErrorContains(t, err, d.Path("x.json")+": disk full")
	require.ErrorContains(t, d.WriteJSON("y.json", func() {}), "write y.json")
	entries, err := os.ReadDir(string(d))
	require.NoError(t, err)
	require.Len(t, entries, 1, "a temporary file is left")
	text, err := os.ReadFile(d.Path("x.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(text))
	require.ErrorContains(t, Dir("/none/such").WriteJSON("z.json", 1), "/none/such/z.json")
}

func TestJudgeAndReport(t *testing.T) {
	t.Parallel()
	d := newPassedRun(t)
	put(t, d, LedgerFile, entry(0, 15)+entry(1, 15))
	put(t, d, ResourcesFile, `{"unix_s":1,"backend_rss_bytes":5}`+"\n")
	v := judge(t, d, verdict.Pass, "")
	require.EqualValues(t, 5, v.Resources.BackendRSSMax)
	require.EqualValues(t, 30, v.Server.Sent)
	for _, name := range []string{VerdictFile, "report.txt", "report.md", "connections.csv", "series.csv"} {
		info, err := os.Stat(d.Path(name))
		require.NoError(t, err)
		require.NotZero(t, info.Size(), name)
	}
	second, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, v, second, "writing reports must not change the verdict")
}

// A shard that cannot be read is not a missing one, so the sentence of the verdict names its error.
func TestUnreadableShardIsNamedFirst(t *testing.T) {
	t.Parallel()
	d := newPassedRun(t)
	path := d.Path("shards/runner-2.json.gz")
	require.NoError(t, os.Truncate(path, 100))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Contains(t, v.Sentence, "INVALID: read shard "+path+": not a complete shard")
	require.Contains(t, v.Reasons, "runner 2 of 2 left no shard")
}

func TestMissingFilesAreInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		edit   func(t *testing.T, d Dir)
		want   verdict.Outcome
		reason string
	}{
		{"a shard is missing", func(t *testing.T, d Dir) {
			require.NoError(t, os.Remove(d.Path("shards/runner-2.json.gz")))
		}, verdict.Invalid, "runner 2 of 2 left no shard"},
		{"a duplicate shard", func(t *testing.T, d Dir) {
			b, err := os.ReadFile(d.Path("shards/runner-2.json.gz"))
			require.NoError(t, err)
			put(t, d, "shards/copy.json.gz", string(b))
		}, verdict.Invalid, "runner 2 left two shards"},
		{"no shard at all", func(t *testing.T, d Dir) { require.NoError(t, os.RemoveAll(d.Path(ShardsDir))) }, verdict.Invalid, "runner 1 of 2 left no shard"},
		{"a truncated server's ledger", func(t *testing.T, d Dir) { put(t, d, LedgerFile, `{"id":"d-0"`) }, verdict.Invalid, "read the server's ledger"},
		{"an incomplete run", func(t *testing.T, d Dir) {
			require.NoError(t, d.WriteJSON(RunFile, RunRecord{Problems: []string{"runner 1 was terminated"}}))
		}, verdict.Invalid, "runner 1 was terminated"},
		{"a malformed plan", func(t *testing.T, d Dir) { put(t, d, PlanFile, "{") }, verdict.Invalid, "plan.json is not a valid plan"},
		{"an invalid plan", func(t *testing.T, d Dir) { put(t, d, PlanFile, "{}") }, verdict.Invalid, "CONNECTIONS must be from 1 to 10000000, got 0"},
		{"a malformed run.json", func(t *testing.T, d Dir) { put(t, d, RunFile, "[") }, verdict.Invalid, "run.json"},
		{"a null run.json", func(t *testing.T, d Dir) { put(t, d, RunFile, "null") }, verdict.Invalid, "run.json: the record is null"},
		{"a malformed manifest", func(t *testing.T, d Dir) { put(t, d, ManifestFile, "[") }, verdict.Invalid, "manifest.json"},
		{"an empty manifest", func(t *testing.T, d Dir) { put(t, d, ManifestFile, "{}") }, verdict.Invalid, "manifest.json must list plan.json and run.json, got no files"},
		{"the target died", func(t *testing.T, d Dir) {
			require.NoError(t, d.WriteJSON(RunFile, RunRecord{Failures: []verdict.TargetFailure{{Text: "the backend died"}}}))
		}, verdict.Fail, "the backend died"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newPassedRun(t)
			c.edit(t, d)
			judge(t, d, c.want, c.reason)
		})
	}
}

func TestUnreadableSamplesWarn(t *testing.T) {
	t.Parallel()
	d := newPassedRun(t)
	put(t, d, ResourcesFile, "{")
	require.Contains(t, judge(t, d, verdict.Pass, "").Warnings[0], "read samples")
}

func TestFolderOfShards(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	p := testPlan()
	p.MaxLate = 0
	for i := 1; i <= 2; i++ {
		require.NoError(t, shard.Write(d.Path(shard.FileName(shard.Runner{Index: i})), testShard(p, i)))
	}
	v := judge(t, d, verdict.Pass, "")
	require.Equal(t, "t", v.TestID)
	require.Equal(t, 0, v.Plan.MaxLate, "the plan must come from the runners")
}

// macOS writes ._NAME next to NAME on foreign file systems. NFS keeps .nfs… for a deleted file that is still open.
func TestHiddenFilesAreIgnored(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{ShardsDir, "."} {
		d := newPassedRun(t)
		if folder == "." {
			d = Dir(d.Path(ShardsDir))
		}
		put(t, d, filepath.Join(folder, "._runner-1"+shard.Suffix), "x")
		judge(t, d, verdict.Pass, "")
	}
}

func TestFoldersWithoutRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		dir  func(t *testing.T) Dir
		want string
	}{
		{"a missing folder", func(t *testing.T) Dir { return Dir(t.TempDir()).sub("none") }, "is not the folder of a run"},
		{"a file", func(t *testing.T) Dir { d := newPassedRun(t); return d.sub(PlanFile) }, "is not the folder of a run"},
		{"an empty folder", func(t *testing.T) Dir { return Dir(t.TempDir()) }, "has neither plan.json nor a shard"},
		{"a shard of a script without a plan", func(t *testing.T) Dir {
			d := Dir(t.TempDir())
			require.NoError(t, shard.Write(d.Path(shard.FileName(shard.Runner{Index: 1})), testShard(plan.Plan{}, 1)))
			return d
		}, "CONNECTIONS must be from 1 to 10000000, got 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := c.dir(t).Judge()
			require.ErrorContains(t, err, c.want)
		})
	}
}

func (d Dir) sub(name string) Dir { return Dir(d.Path(name)) }

func TestRelative(t *testing.T) {
	t.Parallel()
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, "results/x", Dir(filepath.Join(wd, "results/x")).Relative())
	require.Equal(t, "/elsewhere", Dir("/elsewhere").Relative())
}

func TestVerdictOfAnotherSchemaIsRejected(t *testing.T) {
	t.Parallel()
	d := newPassedRun(t)
	put(t, d, VerdictFile, `{"schema": 7}`)
	_, _, err := d.Judge()
	require.EqualError(t, err, fmt.Sprintf("read %s: schema must be 3, got 7; delete it and run `soak merge %s`", d.Path(VerdictFile), d))
}

// Each table of a suite is a file for a spreadsheet. connections.csv is written only if there were connections,
// because a header without rows would suggest that streams were lost.
func TestSuiteFiles(t *testing.T) {
	t.Parallel()
	for _, kind := range append(suite.All(), suite.Default()) {
		for _, hasStreams := range []bool{false, true} {
			if hasStreams && !kind.Target.Streams {
				continue
			}
			p := plan.Default()
			p.Suite, p.TestID, p.Connections, p.Runners, p.BackendURL = kind.InPlan(), "t", 1, 1, "http://h"
			m := &shard.Merged{
				Plan: p, Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
				Suite:   &shard.Suite{Name: kind.Name, Profile: "full", Stages: []shard.Stage{{Name: "a", Title: "a", Kind: "load", Seconds: 10, Rate: 10, Requests: 100}}},
				Runners: []shard.Runner{{Index: 1, Segment: "0:1", State: shard.Finished, EndedUS: time.Hour.Microseconds()}},
			}
			for _, endpoint := range []string{"one", "two"} {
				trend := shard.NewHistogram()
				trend.Record(time.Millisecond)
				m.Metrics = append(m.Metrics, shard.Metric{
					Name: shard.RequestDuration, Type: "trend", Trend: trend, Count: 1, Sum: 1, Min: 1, Max: 1, LastUS: time.Second.Microseconds(),
					Tags: map[string]string{shard.TagStage: "a", shard.TagCode: shard.CodeOK, shard.TagEndpoint: endpoint},
				})
			}
			if hasStreams {
				m.Connections.Add(&shard.Connection{Record: ledger.Record{ID: "soak-0", State: ledger.Completed, Streams: 1, Attempts: 1}})
			}
			v, err := suite.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}})
			require.NoError(t, err, kind.Name)
			d := Dir(filepath.Join(t.TempDir(), kind.Name))
			require.NoError(t, os.MkdirAll(d.Path(ShardsDir), 0o755))
			require.NoError(t, d.WriteJSON(PlanFile, p))
			require.NoError(t, d.Report(v, m, ""), kind.Name)
			requireSchema(t, d.Path(VerdictFile))

			records := 0
			for range v.Records() {
				records++
			}
			// Without the parameter EVERY, these suites act on all of their streams.
			actsOnAll := kind.Name == "slow" || kind.Name == "vanish"
			require.Equal(t, hasStreams && !actsOnAll, records > 0, kind.Name)
			if records > 0 {
				require.Len(t, rows(t, d.Path(ConnectionsFile)), 1+records, kind.Name)
			} else {
				require.NoFileExists(t, d.Path(ConnectionsFile), kind.Name)
			}
			for i := range v.Tables {
				require.Len(t, rows(t, d.Path(report.TableFile(&v.Tables[i]))), 1+len(v.Tables[i].Rows), "%s of %s", v.Tables[i].Title, kind.Name)
			}
		}
	}
}

// rows returns the rows of a CSV file, including its header.
func rows(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return records
}

func TestDiscardKeepsLogsAndShards(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "backend.log", filepath.Join(ShardsDir, "runner-1.json.gz")} {
		out := t.TempDir()
		d, err := Create(out, "t")
		require.NoError(t, err)
		put(t, d, ManifestFile, "{}")
		if name != "" {
			put(t, d, name, "")
		}
		d.Discard()
		files, err := os.ReadDir(out)
		require.NoError(t, err)
		if name == "" {
			require.Empty(t, files, "neither the folder nor the link latest may remain")
			continue
		}
		require.Len(t, files, 2)
		require.FileExists(t, d.Path(name))
		require.FileExists(t, d.Path(ManifestFile))
	}
}
