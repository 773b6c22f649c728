package results

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// writeReportedRun writes a run with reports into out. The run starts the given number of hours after the first one.
// connect is the connect time of its streams.
func writeReportedRun(t *testing.T, out string, hours int, connect time.Duration, seconds int) Dir {
	t.Helper()
	p := testPlan()
	p.TestID, p.Seconds = fmt.Sprintf("run-%d", hours), seconds
	d, err := Create(out, p.TestID)
	require.NoError(t, err)
	require.NoError(t, d.WriteJSON(PlanFile, p))
	require.NoError(t, d.WriteJSON(RunFile, RunRecord{Provenance: report.Provenance{OneClock: true, Command: []string{"bin/soak", "run"}}}))
	for i := 1; i <= 2; i++ {
		s := testShard(p, i)
		s.Runner.StartedUS += int64(hours) * 3600e6
		s.Runner.EndedUS += int64(hours) * 3600e6
		s.Connect = shard.NewHistogram()
		s.Connect.Record(connect)
		require.NoError(t, shard.Write(d.Path(filepath.Join(ShardsDir, shard.FileName(shard.Runner{Index: i}))), s))
	}
	judgeAgainst(t, d, "")
	return d
}

// judgeAgainst judges a run and writes its reports, compared with a baseline.
func judgeAgainst(t *testing.T, d, baseline Dir) {
	t.Helper()
	v, m, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, verdict.Pass, v.Verdict, "%q", v.Reasons)
	require.NoError(t, d.Report(v, m, baseline))
}

// comparison returns the text of the comparison in the page of a run, and the row of a figure; nil if there is no row.
func comparison(t *testing.T, d Dir, figure string) (text string, row []string) {
	t.Helper()
	doc := parsePage(t, d.Path(PageFile))
	doc.Find("#comparison tr").Each(func(_ int, tr *goquery.Selection) {
		if cells := tr.Find("td").Map(func(_ int, td *goquery.Selection) string { return td.Text() }); len(cells) > 0 && cells[0] == figure {
			row = cells[1:]
		}
	})
	return strings.Join(doc.Find("#comparison p").Map(func(_ int, p *goquery.Selection) string { return p.Text() }), "\n"), row
}

func TestPageComparesWithEarlierRuns(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	first := writeReportedRun(t, out, 1, 10*time.Millisecond, 20)
	text, row := comparison(t, first, "connect p50")
	require.Empty(t, text)
	require.Nil(t, row)

	second := writeReportedRun(t, out, 2, 11*time.Millisecond, 20)
	text, row = comparison(t, second, "connect p50")
	require.Contains(t, text, "Compared with run-1 (pass, 2001-09-09 02:46:40 UTC)")
	require.Contains(t, text, "The noise is unknown: a comparison needs at least 3 runs")
	require.Equal(t, []string{"10 ms", "11 ms", "+1 ms", "–", ""}, row)

	writeReportedRun(t, out, 3, time.Second, 30) // another plan
	fourth := writeReportedRun(t, out, 4, 300*time.Millisecond, 20)
	text, row = comparison(t, fourth, "connect p50")
	require.Contains(t, text, "Compared with run-2 ")
	require.Contains(t, text, "from 2 earlier runs of this plan")
	require.Equal(t, []string{"11 ms", "300 ms", "+289 ms"}, row[:3])
	require.Equal(t, "regression", row[4])
	_, row = comparison(t, fourth, "noops missed")
	require.Equal(t, []string{"0", "0", "0", "0 to 0", "same"}, row)
	require.Contains(t, text, "A fault that none of these runs had is always a regression.")

	judgeAgainst(t, fourth, first)
	text, row = comparison(t, fourth, "connect p50")
	require.Contains(t, text, "Compared with run-1 ")
	require.Equal(t, []string{"10 ms", "300 ms", "+290 ms"}, row[:3])
}

func TestBaselineOfAnotherPlanIsRejected(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	run, other := writeReportedRun(t, out, 1, time.Millisecond, 20), writeReportedRun(t, out, 2, time.Millisecond, 30)
	v, m, err := run.Judge()
	require.NoError(t, err)
	err = run.Report(v, m, other)
	require.ErrorContains(t, err, "the baseline cannot be compared with this run")
	require.ErrorContains(t, err, "seconds is 30 in the first and 20 in the second")
	require.ErrorContains(t, run.Report(v, m, run), "is the run itself")
	require.ErrorContains(t, run.Report(v, m, Dir(t.TempDir())), "has no verdict.json")
}

// The page of a described service shows its messages instead of noops: their publication, and their latencies.
func TestPageOfADescribedService(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "described"))
	restore(t, "testdata/golden/described", d)
	v, m, err := d.Judge()
	require.NoError(t, err)
	require.NoError(t, d.Report(v, m, ""))
	doc := parsePage(t, d.Path(PageFile))
	data := doc.Find("#page-data").Text()
	require.Contains(t, data, `"items":"messages"`)
	doc.Find("script, style").Remove()
	text := doc.Find("body").Text()
	for _, word := range []string{"noop", "Noop", "interval"} {
		require.NotContains(t, text, word)
	}
	row := func(section, name string) []string {
		return doc.Find("#"+section+" tr").FilterFunction(func(_ int, tr *goquery.Selection) bool {
			return tr.Children().First().Text() == name
		}).Children().Slice(1, goquery.ToEnd).Map(func(_ int, td *goquery.Selection) string { return td.Text() })
	}
	require.Equal(t, []string{"12", "12", "12", "0", "0", "0"}, row("published", "2/s to 2 topics")[:6])
	require.Equal(t, []string{"4", "6", "24", "24", "0", "0", "0"}, row("published", "gold-topic-0"))
	require.Equal(t, []string{"4", "6", "24", "23", "1", "1", "0"}, row("published", "gold-topic-1"))
	require.Equal(t, []string{"8"}, row("account", "heartbeats"))
	require.Equal(t, []string{"8 streams for 10 s, a message every 1 s on each stream, published at 2/s to 2 topics"}, row("card", "plan"))
	require.Equal(t, "48", row("lateness-all", "publish → receive")[0], "the count must include the duplicate")
	require.Equal(t, "12", row("lateness-all", "publish → last stream of the topic")[0])
	require.Equal(t, "1", row("ends", "lost: published, but not received")[0])
	require.Equal(t, "8", row("ends", "open to the end")[0])
	require.Zero(t, doc.Find("#arithmetic").Length())
	for chart, caption := range map[string]string{
		"messages": "in each period of 5 s; expected: published messages × the streams of their topic", "published": "messages in each period of 5 s",
		"lateness": "publish → receive, in each period of 5 s", "heat": "publish → receive of messages in each period of 5 s; stronger colors mean more of them",
	} {
		require.Contains(t, doc.Find("#chart-"+chart+" figcaption").Text(), caption)
	}
}

// A baseline that the user named is kept when the report is made again, for example by a merge.
func TestNamedBaseline(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	writeReportedRun(t, out, 1, 10*time.Millisecond, 20)
	second := writeReportedRun(t, out, 2, 10*time.Millisecond, 20)
	name, err := second.Baseline()
	require.NoError(t, err)
	require.Empty(t, name, "the previous run must not become a named baseline")
	require.NoError(t, os.Symlink("run-1", filepath.Join(out, "old")))
	for _, baseline := range []Dir{Dir(filepath.Join(out, "run-1")), Dir(filepath.Join(out, "old")), ""} { // a link is resolved to its folder
		judgeAgainst(t, second, baseline)
		name, err = second.Baseline()
		require.NoError(t, err)
		require.Equal(t, "run-1", name, baseline)
	}
}
