package results

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

const start = 1_700_000_000

// writeRun writes the files of a run that the history reads. Run n started n hours after run 0.
func writeRun(t *testing.T, out string, n int, edit func(*verdict.Verdict)) Dir {
	t.Helper()
	v := &verdict.Verdict{Schema: verdict.Schema, Counts: verdict.Counts{Service: shard.Service{Name: "noop", CountBasis: shard.CountByInterval, Message: "noop"}}, TestID: fmt.Sprintf("run-%03d", n), Verdict: verdict.Pass, StartedUnix: float64(start + 3600*n)}
	v.Plan = plan.Default()
	v.Plan.BackendURL, v.Plan.TestID = fmt.Sprintf("http://127.0.0.1:%d", 4000+n), v.TestID
	v.Messages.Received, v.Messages.Expected = 286_800, 286_800
	wobble := float64(n*7%4) / 10
	v.LatenessMS = verdict.Quantiles{P50: 2, P99: 20 + wobble}
	v.ConnectMS = verdict.Quantiles{P50: 10 + wobble, P99: 30 + wobble}
	v.Resources = verdict.Resources{BackendRSSMax: uint64(20+n%2) << 20, BackendCPUAverage: 4 + wobble, RunnerRSSMax: 120 << 20}
	v.Runners = []verdict.Runner{{Index: 1, Host: "a", K6Version: "v2.2.0"}}
	if edit != nil {
		edit(v)
	}
	d := Dir(filepath.Join(out, fmt.Sprintf("run-%03d", n)))
	require.NoError(t, os.MkdirAll(string(d), 0o700))
	for name, content := range map[string]any{VerdictFile: v, RunFile: RunRecord{Provenance: report.Provenance{OneClock: true, Version: fmt.Sprintf("commit-%d", n/10)}}, PageFile: "a report"} {
		b, err := json.Marshal(content)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(d.Path(name), b, 0o600))
	}
	return d
}

func setLate(v *verdict.Verdict) { v.LatenessMS.P99 = 90 }

func read(t *testing.T, out string) *History {
	t.Helper()
	h, err := ReadHistory(out)
	require.NoError(t, err)
	return h
}

func parsePage(t *testing.T, path string) *goquery.Document {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	doc, err := goquery.NewDocumentFromReader(f)
	require.NoError(t, err)
	return doc
}

// page writes the page of all runs, and returns it with the rows of its table of runs. A row maps columns to cells.
func page(t *testing.T, out string) (doc *goquery.Document, rows []map[string]string) {
	t.Helper()
	require.NoError(t, WriteHistory(out))
	doc = parsePage(t, filepath.Join(out, HistoryFile))
	doc.Find("#runs tbody tr").Each(func(_ int, tr *goquery.Selection) {
		row := map[string]string{}
		tr.Find("td").Each(func(_ int, td *goquery.Selection) { row[td.AttrOr("data-label", "")] = strings.TrimSpace(td.Text()) })
		rows = append(rows, row)
	})
	return doc, rows
}

func column(rows []map[string]string, name string) (out []string) {
	for _, r := range rows {
		out = append(out, r[name])
	}
	return out
}

// writeAllStates writes a run of each state, and other files, into a folder of results.
func writeAllStates(t *testing.T, out string) {
	t.Helper()
	writeRun(t, out, 1, nil)
	writeRun(t, out, 2, func(v *verdict.Verdict) { v.Verdict, v.Messages.Missed, v.Messages.Received = verdict.Fail, 1, 286_799 })
	writeRun(t, out, 3, func(v *verdict.Verdict) { v.Verdict, v.Reasons = verdict.Invalid, []string{"a runner left no shard"} })
	damaged := writeRun(t, out, 4, nil)
	content, err := os.ReadFile(damaged.Path(VerdictFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(damaged.Path(VerdictFile), content[:len(content)/2], 0o600))
	modTime := time.Unix(start+3600*4, 0)
	require.NoError(t, os.Chtimes(damaged.Path(VerdictFile), modTime, modTime))

	active := Dir(filepath.Join(out, "run-005"))
	require.NoError(t, os.MkdirAll(active.Path(ShardsDir), 0o700))
	require.NoError(t, active.WriteJSON(PlanFile, plan.Default()))
	require.NoError(t, os.MkdirAll(filepath.Join(out, "campaign", "run-001"), 0o700))
	require.NoError(t, os.Symlink("run-005", filepath.Join(out, "latest")))
	require.NoError(t, os.WriteFile(filepath.Join(out, "notes.txt"), []byte("mine"), 0o600))
}

func TestListedStates(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeAllStates(t, out)
	doc, rows := page(t, out)
	runs := column(rows, "run")
	for i, prefix := range []string{"… run-005 ", "! run-004 ", "? run-003 ", "✗ run-002 ", "✓ run-001 2023-11-14 23:13:20 UTC"} {
		require.True(t, strings.HasPrefix(runs[i], prefix), runs[i])
	}
	require.Equal(t, []string{"unfinished", "damaged", "invalid", "fail", "pass"}, column(rows, "verdict"))
	require.Equal(t, "soak: 1,200 streams, 1 h, a noop every 15 s, 2 runners", rows[4]["plan"])
	require.Contains(t, rows[0]["figures"], "judge its data with soak merge")
	require.Contains(t, rows[1]["figures"], "its verdict.json cannot be read (unexpected end of JSON input)")
	require.Contains(t, rows[2]["figures"], "a runner left no shard 286,800 of 286,800 noops received")
	require.Contains(t, rows[3]["figures"], "noops missed 1 286,799 of 286,800 noops received, lateness p99 20.2 ms")
	require.Equal(t, "Folders with neither a verdict nor a plan: campaign.", doc.Find("#others p").Text())
	require.Equal(t, "./run-001/report.html", doc.Find("#runs tbody tr").Last().Find("a").First().AttrOr("href", ""))
	require.Zero(t, doc.Find("#runs tbody tr").First().Find("a").Length(), "a run without a verdict must not link to a report")
	require.Equal(t, "5 runs", doc.Find(".banner .word").Text())

	var text strings.Builder
	require.NoError(t, read(t, out).Text(&text, 20))
	output := strings.Join(strings.Fields(text.String()), " ")
	require.Contains(t, output, "5 runs, 1 pass, 1 fail, 1 invalid, 1 unfinished, 1 damaged")
	require.Contains(t, output, "UNFINISHED run-005")
	for line := range strings.Lines(strings.ReplaceAll(text.String(), out, "results")) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
}

func TestHistoryMarksRegressions(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for n := range 4 {
		writeRun(t, out, n, nil)
	}
	writeRun(t, out, 4, setLate)
	writeRun(t, out, 5, func(v *verdict.Verdict) { v.Verdict = verdict.Invalid })
	doc, rows := page(t, out)
	statuses := column(rows, "against earlier runs")
	require.Equal(t, "an invalid run is not compared", statuses[0])
	require.Regexp(t, `^regression against 4 runs: lateness p99: 90 ms instead of 20\.\d ms \(\+\d+ %; outside`, statuses[1])
	require.Equal(t, []string{"no worse than 3 runs", "no worse than 2 runs", "too few earlier runs that passed", "too few earlier runs that passed"}, statuses[2:])

	var old []compare.Run
	for n := range 5 {
		r, err := compare.Read(filepath.Join(out, fmt.Sprintf("run-%03d", n)))
		require.NoError(t, err)
		old = append(old, r)
	}
	c, err := compare.Compare(old[:4], old[4:], compare.Tolerance)
	require.NoError(t, err)
	require.Len(t, c.Regressions(), 1)
	require.Contains(t, statuses[1], c.Regressions()[0].Sentence())

	row := doc.Find("#plan-1 tbody tr").First()
	require.Equal(t, "lateness p99", strings.TrimSpace(row.Find("td").First().Text()))
	require.Equal(t, 6, row.Find(".spark i").Length())
	require.Equal(t, 1, row.Find(".spark i.bad").Length(), "the regression must be marked")
	require.Equal(t, "lateness p99 over 6 runs, from 20 ms to 90 ms", row.Find(".spark").AttrOr("aria-label", ""))
	require.Equal(t, "#plan-1", doc.Find("#runs td[data-label=plan] a").First().AttrOr("href", ""))
}

// Regressions do not enter the baseline, so every run is a regression as long as a metric stays worse.
func TestBaselineExcludesRegressions(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for n := range 4 {
		writeRun(t, out, n, nil)
	}
	for n := range 12 {
		writeRun(t, out, 4+n, setLate)
	}
	_, rows := page(t, out)
	for _, text := range column(rows, "against earlier runs")[:12] {
		require.Contains(t, text, "regression against 4 runs: lateness p99")
	}
}

// A fault is a regression again if the only earlier runs with it did not pass.
func TestFaultOfAFailedRunIsARegressionAgain(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for n := range 6 {
		writeRun(t, out, n, func(v *verdict.Verdict) {
			if n >= 4 {
				v.Verdict, v.Messages.Missed = verdict.Fail, 1
			}
		})
	}
	doc, rows := page(t, out)
	for _, text := range column(rows, "against earlier runs")[:2] {
		require.Contains(t, text, "regression against 4 runs: noops missed: up to 1")
	}
	require.Regexp(t, "last 10 earlier runs .* that passed without a regression.* or a fault that none of these runs had", doc.Find("#runs p").Text())
}

func TestSaturatedGeneratorIsNotARegression(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for n := range 4 {
		writeRun(t, out, n, nil)
	}
	writeRun(t, out, 4, func(v *verdict.Verdict) { setLate(v); v.Generator.Saturated = true })
	doc, rows := page(t, out)
	require.Equal(t, "unsure, because the load generator may be the cause: lateness p99", rows[0]["against earlier runs"])
	require.Zero(t, doc.Find(".spark i.bad").Length())
}

func TestChangesSincePreviousRun(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 8, nil)
	writeRun(t, out, 9, nil)
	writeRun(t, out, 10, nil)
	writeRun(t, out, 11, func(v *verdict.Verdict) { v.Plan.NoopInterval, v.Plan.MaxOutageS, v.Plan.Prefix = 30, 60, "other-" })
	writeRun(t, out, 12, func(v *verdict.Verdict) { v.Runners[0].K6Version = "v2.3.0" })
	_, rows := page(t, out)
	require.Equal(t, []string{
		"k6 v2.2.0 → v2.3.0", "noop_interval_s 15 → 30; max_outage_s 30 → 60", "soak commit-0 → commit-1", "nothing", "the first of its suite",
	}, column(rows, "changed since the previous run"), "the previous run must be the last one of the same plan, or else of the same suite")
}

func TestHistoryEscapesMarkup(t *testing.T) {
	t.Parallel()
	const evil = `<img src=x onerror=alert(1)></script><svg onload=alert(2)>`
	out := t.TempDir()
	for n := range 2 {
		writeRun(t, out, n, func(v *verdict.Verdict) {
			v.Plan.Suite, v.Runners[0].K6Version = evil, fmt.Sprint(evil, n)
			v.Metrics = []verdict.Metric{{Name: evil, Unit: evil, Value: 1}}
		})
	}
	require.NoError(t, os.Rename(filepath.Join(out, "run-000"), filepath.Join(out, `javascript:alert("1")<b>`)))
	doc, rows := page(t, out)
	require.Contains(t, rows[0]["plan"], evil)
	require.Contains(t, rows[0]["changed since the previous run"], evil)
	require.Zero(t, doc.Find("img, script, b:not(.mark)").Length())
	require.Equal(t, "./javascript:alert%28%221%22%29%3Cb%3E/report.html", doc.Find("#runs tbody tr").Last().Find("a").AttrOr("href", ""))
	policy := doc.Find("meta[http-equiv='Content-Security-Policy']").AttrOr("content", "")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
}

func TestForeignIndexIsKept(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, nil)
	path := filepath.Join(out, HistoryFile)
	require.NoError(t, os.WriteFile(path, []byte("<h1>mine</h1>"), 0o600))
	require.ErrorContains(t, WriteHistory(out), "was not written by `soak history`")
	require.False(t, HasHistory(out))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "<h1>mine</h1>", string(content))
	require.NoError(t, os.Remove(path))
	require.NoError(t, WriteHistory(out))
	require.NoError(t, WriteHistory(out), "a page of soak must be replaced")
	require.True(t, HasHistory(out))
}

// If runs end at the same time, the last page lists all of them.
func TestSimultaneousRunsAreListed(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 0, nil)
	h := read(t, out)
	require.False(t, h.isStale())
	writeRun(t, out, 1, nil)
	require.True(t, h.isStale(), "another run was judged in the meantime, so the page must be stale")
	require.NoError(t, os.Remove(filepath.Join(out, "run-001", PageFile)))
	h = read(t, out)
	require.NoError(t, Dir(filepath.Join(out, "run-001")).WriteJSON(PageFile, ""))
	require.True(t, h.isStale(), "the page of a run was written in the meantime, so the page of all runs must be stale")

	const runs = 8
	var writers sync.WaitGroup
	for n := range runs {
		writeRun(t, out, n+2, nil)
		writers.Go(func() { assert.NoError(t, WriteHistory(out)) })
	}
	writers.Wait()
	doc, err := os.ReadFile(filepath.Join(out, HistoryFile))
	require.NoError(t, err)
	require.Equal(t, runs+2, strings.Count(string(doc), "/report.html\""))
}

func TestEmptyFolderHasAPage(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	doc, _ := page(t, out)
	require.Contains(t, doc.Find(".banner h1").Text(), "No runs yet")
	_, err := ReadHistory(filepath.Join(out, "none"))
	require.ErrorContains(t, err, "name another folder with --out")
}

// Every verdict in docs/results is listed, whatever its suite.
func TestAllSuitesAreListed(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	verdicts, err := filepath.Glob("../../docs/results/*/verdict.json")
	require.NoError(t, err)
	require.Greater(t, len(verdicts), 20)
	for _, path := range verdicts {
		require.NoError(t, os.CopyFS(filepath.Join(out, filepath.Base(filepath.Dir(path))), os.DirFS(filepath.Dir(path))))
	}
	_, rows := page(t, out)
	require.Len(t, rows, len(verdicts))
	for _, r := range rows {
		require.NotEmpty(t, r["figures"], r["run"])
		require.NotContains(t, r["plan"]+r["figures"], "NaN")
	}
}

// Each run writes the page of all runs again.
func TestPageOfHundredRunsIsSmall(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	padding := make([]verdict.Finding, 100) // as large as a real verdict with faults
	for i := range padding {
		padding[i] = verdict.Finding{Kind: "lost", ID: fmt.Sprint("soak-", i), Text: strings.Repeat("x", 80)}
	}
	for n := range 100 {
		writeRun(t, out, n, func(v *verdict.Verdict) { v.Findings, v.Plan.Connections = padding, 1000+n%5 })
	}
	require.NoError(t, WriteHistory(out))
	info, err := os.Stat(filepath.Join(out, HistoryFile))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20)/5)
}

func TestDuplicateSettingsAreNamedOnce(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for n, connections := range []int{500, 800} {
		d := writeRun(t, out, n, nil)
		var v map[string]any
		content, err := os.ReadFile(d.Path(VerdictFile))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(content, &v))
		p := v["plan"].(map[string]any)
		p["connections"], p["parameters"] = connections, map[string]any{"CONNECTIONS": fmt.Sprint(connections), "WARMUP": fmt.Sprint(n)}
		require.NoError(t, d.WriteJSON(VerdictFile, v))
	}
	_, rows := page(t, out)
	require.Equal(t, "WARMUP 0 → 1; connections 500 → 800", rows[0]["changed since the previous run"])
}

// A pass that checked no messages is counted separately.
func TestConnectionsOnlyInHistory(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeRun(t, out, 1, nil)
	writeRun(t, out, 2, func(v *verdict.Verdict) { v.Plan.Service, v.Evidence.Kind = "sse", verdict.ByNothing })
	doc, rows := page(t, out)
	require.Equal(t, []string{"pass (connections only)", "pass"}, column(rows, "verdict"))
	require.True(t, doc.Find(".banner").HasClass("doubt"))
	require.Contains(t, doc.Find(".tiles .doubt").Text(), "passed (connections only)")
	var text strings.Builder
	require.NoError(t, read(t, out).Text(&text, 9))
	require.Contains(t, strings.Join(strings.Fields(text.String()), " "), "1 pass, 1 pass (connections only) PASS (CONNECTIONS ONLY) run-002")
}
