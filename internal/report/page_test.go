package report_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// render returns report.html, as text and parsed.
func render(t *testing.T, r *report.Run) (page string, doc *goquery.Document) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, html.Write(&b, report.Full(r)))
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	require.NoError(t, err)
	return b.String(), doc
}

// row returns the texts of the first row of a section that starts with name, without the name.
func row(t *testing.T, doc *goquery.Document, section, name string) []string {
	t.Helper()
	var out []string
	doc.Find("#" + section + " tr").EachWithBreak(func(_ int, tr *goquery.Selection) bool {
		cells := tr.Find("th, td").Map(func(_ int, c *goquery.Selection) string { return strings.TrimSpace(c.Text()) })
		if cells[0] == name {
			out = cells[1:]
		}
		return out == nil
	})
	require.NotNil(t, out, "%s has no row %q", section, name)
	return out
}

func TestPageShowsCounts(t *testing.T) {
	t.Parallel()
	r := report.SimulatedRun(100, 3600)
	r.Merged.Connections.Edit(1).Findings = []ledger.Finding{{Kind: ledger.KindOverdue, At: time.Minute, Lateness: time.Hour}}
	r.Verdict.Control = &verdict.Control{Streams: 40, Received: 144_000, LongestMS: 12.5}
	_, doc := render(t, r)
	require.Equal(t, "FAIL", doc.Find(".banner .word").Text())
	require.True(t, doc.Find(".banner").HasClass("bad"))
	require.Contains(t, doc.Find(".banner li").Text(), "d-50 missed noop 7: the number was skipped (noticed at 22:15:21.000 UTC)")
	require.Equal(t, []string{"99", "23,660", "1"}, doc.Find(".tiles dd").Map(func(_ int, dd *goquery.Selection) string {
		dd.Find("small").Remove()
		return dd.Text()
	})[:3])

	require.Equal(t, []string{"0", "1", "clients lose data"}, row(t, doc, "checks", "✗ noops missed"))
	require.Equal(t, []string{"0", "0", "clients receive a message twice"}, row(t, doc, "checks", "✓ noops duplicated"))
	require.Equal(t, []string{"99", "1"}, row(t, doc, "checks", "Get status was 200"))

	require.Equal(t, []string{"host-a", "finished", "50", "11,950", "11,950", "0", "0", "0", "0", "0", "11,950", "80.0 MiB", "72 s"}, row(t, doc, "account", "1"))
	require.Equal(t, []string{"host-a", "finished", "50", "11,711", "11,710", "1", "0", "0", "0", "0", "11,711", "80.0 MiB", "72 s"}, row(t, doc, "account", "2"))
	require.Equal(t, []string{"", "", "100", "23,661", "23,660", "1", "0", "0", "0", "0", "23,661"}, row(t, doc, "account", "all"))

	require.Equal(t, []string{"100 streams for 59 min 55 s, a noop every 15 s"}, row(t, doc, "card", "plan"))
	require.Equal(t, []string{"20,000 per process"}, row(t, doc, "card", "open files"))
	require.Equal(t, []string{"40 streams to a reference server on the same machine as the runners: 144,000 events, 0 late, longest delay 12.5 ms"}, row(t, doc, "card", "control group"))
	require.Equal(t, []string{"connectionTest.js (sha256 0123456789ab)"}, row(t, doc, "card", "script"))

	require.Equal(t, []string{"1", "1.0 %", "22:13:23", "22:13:23", "250 ms", "250 ms", "250 ms"}, row(t, doc, "ends", "refused: status 503"))
	require.Equal(t, []string{"99", "99.0 %"}, row(t, doc, "ends", "ended by the server on request")[:2])
	require.Equal(t, []string{"1", "1.0 %", "22:15:00", "22:15:00", "1.5 s", "1.5 s", "1.5 s"}, row(t, doc, "ends", "reconnected"))
	require.Equal(t, "1", row(t, doc, "ends", "missed")[0])
	require.Equal(t, []string{"1", "< 0.01 %", "22:14:20", "22:14:20", "–", "–", "–"}, row(t, doc, "ends", "a stream open for longer than its lifetime"), "the lifetime of a stream must not count as the lateness of a noop")

	require.Equal(t, []string{"floor(3595 / 15)", "239"}, row(t, doc, "arithmetic", "planned noops per stream, at least"))
	require.Equal(t, []string{"100 × 239", "23,900"}, row(t, doc, "arithmetic", "planned noops of all streams, at least"))
	require.Equal(t, "−239", row(t, doc, "arithmetic", "difference from the product")[1])
	require.Equal(t, "47 bytes (noop 239 with id, timestamp and chunk framing) × received", row(t, doc, "arithmetic", "events on the wire")[0], "the size must equal the value in docs/accounting.md")
	require.Zero(t, doc.Find("#comparison").Length(), "a run without an earlier run must have no comparison")

	require.Contains(t, doc.Find("#ends").Text(), "The section “Noops and findings” counts all.")
	r.Verdict.Service.CountBasis = shard.CountNothing
	_, doc = render(t, r)
	require.Equal(t, "Events received", doc.Find("#account h2").Text())
	require.Contains(t, doc.Find("#ends").Text(), "The section “Events received” counts all.")
}

func TestGrowingMemoryIsReported(t *testing.T) {
	t.Parallel()
	_, doc := render(t, report.SimulatedRun(100, 3600))
	backend := row(t, doc, "leaks", "backend")
	require.Equal(t, "+36.0 MiB", backend[3], "per hour")
	require.Equal(t, "+36.0 MiB to +36.0 MiB", backend[4])
	require.Equal(t, "+372.4 KiB", backend[5], "per stream: 36 MiB / 99")
	require.Equal(t, "grows", backend[6])
	require.Equal(t, "flat", row(t, doc, "leaks", "nginx")[6])
	require.Equal(t, "flat", row(t, doc, "leaks", "runners, all")[6], "noise must not count as a leak")

	_, doc = render(t, report.SimulatedRun(100, 120))
	require.Zero(t, doc.Find("#leaks").Length(), "a run that is too short for a slope must not have the section")
}

func TestHeadroom(t *testing.T) {
	t.Parallel()
	_, doc := render(t, report.SimulatedRun(100, 3600))
	backend := row(t, doc, "headroom", "backend")
	require.Equal(t, "0.2 %", backend[0], "10 ms in 5 s")
	require.Equal(t, "20.0 %", backend[1])
	require.Equal(t, "2.0 %", backend[3], "for 1,000 streams")
	require.Equal(t, "≈ 50,000", backend[5])
}

// injectMarkupInto replaces each text of a run that a service or a user controls with the given text.
func injectMarkupInto(r *report.Run, text string) {
	report.InjectMarkup(r.Verdict, text)
	r.Merged.Runners[0].Script, r.Merged.Runners[0].ScriptHash = text, text
	r.Merged.Connections.Edit(0).Reason, r.Merged.Connections.Edit(0).State = text, ledger.State(text)
	r.Merged.Connections.Edit(1).Findings = []ledger.Finding{{Kind: ledger.Kind(text), Note: text}}
	r.Command, r.Proxies, r.Version, r.Backend, r.Nginx, r.ResourcesFrom = []string{text}, []string{text}, text, text, text, text
	r.Machine.Name, r.Machine.System, r.Machine.Kernel, r.Machine.CPU = text, text, text, text
	r.Comparison = report.Section{ID: "comparison", Title: text, Lead: []string{text}}
	for i := range r.Files {
		r.Files[i].Name, r.Files[i].Content = text, []byte(text)
	}
}

func TestPageEscapesMarkup(t *testing.T) {
	t.Parallel()
	_, clean := render(t, report.SimulatedRun(20, 600))
	for _, evil := range []string{
		`<img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `</style></title><svg onload=alert(1)>`,
		`" onmouseover="alert(1)`, `' autofocus onfocus='alert(1)`, `<!--`, `{{.Title}} ${1} &lt;`,
	} {
		r := report.SimulatedRun(20, 600)
		injectMarkupInto(r, evil)
		_, doc := render(t, r)
		require.Contains(t, doc.Find(".banner .about").Text(), evil)
		require.GreaterOrEqual(t, strings.Count(doc.Text(), evil), 25, "the page must display markup as text")
		for _, element := range []string{"img", "svg", "script", "style", "title", "iframe", "link"} {
			require.Equal(t, clean.Find(element).Length(), doc.Find(element).Length(), "%s: %s", evil, element)
		}
		doc.Find("*").Each(func(_ int, e *goquery.Selection) {
			for _, a := range e.Nodes[0].Attr {
				require.False(t, strings.HasPrefix(a.Key, "on"), "%s: %s=%q", evil, a.Key, a.Val)
			}
		})
	}
}

func TestPageOfEightHoursIsUnderTwoMegabytes(t *testing.T) {
	t.Parallel()
	r := report.SimulatedRun(1200, 8*3600)
	lines := bytes.Repeat([]byte("1700000000,1200,0,0,80,0,0,1.234,5.678,9.012,73400320,2.0,20,0,0,0,20971520,0.2,1200,12,1210,31457280,0.1\n"), 5760)
	for i := range lines { // makes the lines as hard to compress as real values
		if lines[i] >= '0' && lines[i] <= '9' && i%3 == 0 {
			lines[i] = byte('0' + (i*7919+i/113)%10)
		}
	}
	r.Files[2].Content = lines
	page, _ := render(t, r)
	limit := 2_000_000
	if _, err := os.Stat("html/bundle/page.js"); err != nil {
		limit -= 80_000 // the size of the script, which `make build` bundles
	}
	require.Less(t, len(page), limit)
	require.NotContains(t, page, "http-equiv=\"refresh\"")
}

func TestPagesOfIncompleteRuns(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.BackendURL = "none", "http://h"
	for name, shards := range map[string][]*shard.Shard{
		"no runner left a shard": nil,
		"only a first checkpoint": {{
			Plan: p, Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
			Runner: shard.Runner{Index: 1, Segment: "0:1/2", State: shard.Running, StartedUS: report.SimulatedStart * 1e6, EndedUS: report.SimulatedStart * 1e6},
		}},
	} {
		m := shard.Merge(p, shards)
		_, doc := render(t, &report.Run{Merged: m, Verdict: report.NewVerdict(t, m)})
		require.Equal(t, "INVALID", doc.Find(".banner .word").Text(), name)
		require.True(t, doc.Find(".banner").HasClass("doubt"), name)
		require.NotZero(t, doc.Find("#checks tr").Length(), name)
		require.Zero(t, doc.Find("figure").Length(), name)
	}
}

func TestPageLoadsNothingExternal(t *testing.T) {
	t.Parallel()
	_, doc := render(t, report.SimulatedRun(20, 600))
	require.Zero(t, doc.Find("[src], link, [href]:not([href^='#'])").Length())
	policy, _ := doc.Find("meta[http-equiv='Content-Security-Policy']").Attr("content")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
}

func TestPageShowsActions(t *testing.T) {
	t.Parallel()
	r := report.SimulatedRun(20, 600)
	_, doc := render(t, r)
	require.Zero(t, doc.Find("#actions").Length(), "a run without an action must not have the section")
	evil := `</script><img src=x onerror=alert(1)>`
	resumed, seconds := uint64(7), 4.5
	r.Verdict.Actions = []verdict.Action{{
		ActionResult: verdict.ActionResult{
			Action: plan.Action{Name: "deploy", At: time.Minute, Command: evil}, StartedUnix: report.SimulatedStart + 60, EndedUnix: report.SimulatedStart + 62, Output: evil,
		},
		Effect: &verdict.Effect{
			Until: report.SimulatedStart + 122, Lost: 20, Losses: 20, FirstLost: &seconds, Reconnected50: &seconds, Reconnected99: &seconds, Reconnected100: &seconds, Peak: 20, Resumed: &resumed,
			Slowest: &verdict.Outage{ID: evil, Unix: report.SimulatedStart + 60, Seconds: 4.5},
		},
	}}
	page, doc := render(t, r)
	require.Equal(t, []string{"20 streams, the first 4.5 s after the action started"}, row(t, doc, "actions", "lost"))
	require.Equal(t, []string{"50 % after 4.5 s, 99 % after 4.5 s, 100 % after 4.5 s"}, row(t, doc, "actions", "reconnected"))
	require.Equal(t, []string{"0 missed, 7 resumed, 0 duplicated"}, row(t, doc, "actions", "messages"))
	require.Equal(t, []string{evil}, row(t, doc, "actions", "command"))
	require.Zero(t, doc.Find("img").Length())
	require.Contains(t, page, `"lines":[{"name":"deploy","at":1700000060}]`)
	require.True(t, strings.Contains(doc.Find("nav").Text(), "Actions"))
}

// In a run that checked no message, only the connections are green.
func TestPageOfConnectionsOnlyIsYellow(t *testing.T) {
	t.Parallel()
	r := report.SimulatedRun(20, 60)
	m := r.Merged
	m.Plan.Service, m.Service = "sse", shard.Service{Name: "sse", CountBasis: shard.CountNothing}
	m.Checks = []shard.ScriptCheck{{Name: "Get status was 200", Passes: 20}}
	for i := range m.Connections.Len() {
		c := m.Connections.Edit(i)
		c.Record = ledger.Record{ID: c.ID, State: ledger.Completed, Reason: "client", Attempts: 1, Streams: 1, OpenedAt: c.OpenedAt, ClosedAt: c.ClosedAt, StreamTime: m.Plan.Hold(), OpenTime: m.Plan.Hold(), Counts: ledger.Counts{Unchecked: 3}}
	}
	r.Verdict = report.NewVerdict(t, m)
	_, doc := render(t, r)
	require.Equal(t, "PASS (connections only)", doc.Find(".banner .word").Text(), "%v", r.Verdict.Reasons)
	require.True(t, doc.Find(".banner").HasClass("doubt"))
	require.Contains(t, doc.Find(".banner h1").Text(), "messages were not checked")
	require.Equal(t, 1, doc.Find(".tiles .good").Length(), "only the tile of the streams open to the end must be green")
	require.Contains(t, doc.Find(".tiles .doubt").Text(), "not checked60 events that were not checked")
	require.Contains(t, row(t, doc, "checks", "– messages checked")[1], "not judged")
}

func TestStreamsOfACrashedRunnerHaveTheirCause(t *testing.T) {
	t.Parallel()
	r := report.SimulatedRun(20, 60)
	m := r.Merged
	m.Runners[0].State = shard.Running
	for i := range m.Connections.Len() {
		if c := m.Connections.Edit(i); c.Runner == 0 {
			c.State, c.Reason = ledger.Open, ""
		}
	}
	r.Verdict = report.NewVerdict(t, m)
	_, doc := render(t, r)
	require.Equal(t, "10", row(t, doc, "ends", "open when its runner ended early")[0])
}

// No tile is green if no message was expected.
func TestTilesWithoutMessagesAreNotJudged(t *testing.T) {
	t.Parallel()
	r := report.SimulatedRun(20, 60)
	for i := range r.Merged.Connections.Len() {
		c := r.Merged.Connections.Edit(i)
		c.Record = ledger.Record{ID: c.ID, State: ledger.Refused, Reason: "status 404", Attempts: 1, ClosedAt: c.ClosedAt}
	}
	r.Verdict = report.NewVerdict(t, r.Merged)
	_, doc := render(t, r)
	require.Equal(t, 0, doc.Find(".tiles .good").Length(), doc.Find(".tiles").Text())
	require.Contains(t, doc.Find(".tiles").Text(), "not judged: none was expected")
	require.NotContains(t, doc.Find(".tiles").Text(), "lateness")
}

func TestPageOfASuite(t *testing.T) {
	t.Parallel()
	_, doc := render(t, report.SuiteRun())
	require.Equal(t, "PASS", doc.Find(".banner .word").Text())
	require.Equal(t, "20 requests/s were sustained", doc.Find(".banner h1").Text())
	require.Equal(t, "20requests/s", doc.Find(".tiles dd").First().Text())
	require.Equal(t, "50,794requests/s", doc.Find(".tiles dd").Eq(1).Text())
	require.Equal(t, "1.5 s", doc.Find(".tiles dd").Last().Text())
	require.Equal(t, []string{"all", "0 wrong", ""}, row(t, doc, "checks", "✓ responses are correct"))
	require.Equal(t, []string{"20,50"}, row(t, doc, "card", "STAGES"))
	require.Equal(t, []string{"between 20 and 50 requests/s"}, row(t, doc, "results", "breaks"))
	require.Equal(t, []string{"1,500", "bad"}, row(t, doc, "results", "high"))
	require.Equal(t, "Stages good: under 1 % failed", doc.Find("#results caption").Text())
	require.True(t, doc.Find("#results thead th").Eq(1).HasClass("number"))
	require.False(t, doc.Find("#results thead th").Eq(2).HasClass("number"))
	require.NotZero(t, doc.Find("#chart-target-cpu").Length())
	require.Equal(t, 1, doc.Find("#curves figure").Length())
	for _, selector := range []string{"#account", "#arithmetic", "#ends", "#chart-messages"} {
		require.Zero(t, doc.Find(selector).Length(), selector)
	}
}

func TestSuitePageEscapesMarkup(t *testing.T) {
	t.Parallel()
	const evil = `<img src=x onerror=alert(1)></script>`
	r := report.SuiteRun()
	v := r.Verdict
	v.Suite.Name, v.Suite.Parameters, v.Suite.Stages[0].Title = evil, map[string]string{evil: evil}, evil
	v.Facts, v.Metrics = []verdict.Fact{{Name: evil, Value: evil}}, []verdict.Metric{{Name: evil, Unit: evil}}
	v.Tables = []verdict.Table{{Title: evil, Note: evil, Columns: []string{evil}, Rows: [][]string{{evil}}}}
	_, doc := render(t, r)
	require.Zero(t, doc.Find("img").Length())
	require.Equal(t, evil, doc.Find("#results td").Last().Text())
}
