package html

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func render(t *testing.T, r *Run) (page string, doc *goquery.Document) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, r))
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	require.NoError(t, err)
	return b.String(), doc
}

// table is a table of a section as text: the row that begins with name, without the name.
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

func TestPageOfASoakShowsItsCounts(t *testing.T) {
	t.Parallel()
	_, doc := render(t, madeUp(100, 3600))
	require.Equal(t, "FAIL", doc.Find(".banner .word").Text())
	require.True(t, doc.Find(".banner").HasClass("bad"))
	require.Contains(t, doc.Find(".banner li").Text(), "d-50 missed noop 7: the number was skipped, noticed at 22:15:21.000 UTC")
	require.Equal(t, []string{"99", "23,660", "1", "1.1 ms", "differs"}[:3], doc.Find(".tiles dd").Map(func(_ int, dd *goquery.Selection) string {
		dd.Find("small").Remove()
		return dd.Text()
	})[:3])

	require.Equal(t, []string{"0", "1", "a message that never came"}, row(t, doc, "checks", "✗ noops missed"))
	require.Equal(t, []string{"0", "0", "a message that came twice"}, row(t, doc, "checks", "✓ noops duplicated"))
	require.Equal(t, []string{"99", "1"}, row(t, doc, "checks", "Get status was 200"))

	require.Equal(t, []string{"host-a", "finished", "50", "11,950", "11,950", "0", "0", "0", "0", "0", "11,950"}, row(t, doc, "account", "1"))
	require.Equal(t, []string{"host-a", "finished", "50", "11,711", "11,710", "1", "0", "0", "0", "0", "11,711"}, row(t, doc, "account", "2"))
	require.Equal(t, []string{"", "", "100", "23,661", "23,660", "1", "0", "0", "0", "0", "23,661"}, row(t, doc, "account", "all"))

	require.Equal(t, []string{"100 connections for 1 h, a noop every 15 s"}, row(t, doc, "card", "plan"))
	require.Equal(t, []string{"20,000 per process"}, row(t, doc, "card", "open files"))
	require.Equal(t, []string{"connectionTest.js (sha256 0123456789ab)"}, row(t, doc, "card", "script"))

	require.Equal(t, []string{"1", "1.0 %", "22:13:23", "22:13:23", "250 ms", "250 ms", "250 ms"}, row(t, doc, "ends", "refused: status 503"))
	require.Equal(t, []string{"99", "99.0 %"}, row(t, doc, "ends", "ended by the server when asked to")[:2])
	require.Equal(t, []string{"1", "1.0 %", "22:15:00", "22:15:00", "1.5 s", "1.5 s", "1.5 s"}, row(t, doc, "ends", "lost, and back"))
	require.Equal(t, "1", row(t, doc, "ends", "lost: a number was skipped")[0])

	require.Equal(t, []string{"floor(3595 / 15)", "239"}, row(t, doc, "arithmetic", "noops of a connection, at least"))
	require.Equal(t, []string{"100 × 239", "23,900"}, row(t, doc, "arithmetic", "noops of all, at least"))
	require.Equal(t, "−239", row(t, doc, "arithmetic", "beyond the product")[1])
	require.Equal(t, "47 bytes at noop 239, with id, timestamp and chunk × received", row(t, doc, "arithmetic", "events on the wire")[0], "docs/math.md says so too")
	require.Equal(t, "There is no earlier run.", doc.Find("#comparison p").Text())
}

func TestGrowingMemoryIsReported(t *testing.T) {
	t.Parallel()
	_, doc := render(t, madeUp(100, 3600))
	backend := row(t, doc, "leaks", "backend")
	require.Equal(t, "+36.0 MiB", backend[3], "per hour")
	require.Equal(t, "+36.0 MiB to +36.0 MiB", backend[4])
	require.Equal(t, "+372.4 KiB", backend[5], "per stream: 36 MiB / 99")
	require.Equal(t, "grows", backend[6])
	require.Equal(t, "flat", row(t, doc, "leaks", "nginx")[6])
	require.Equal(t, "flat", row(t, doc, "leaks", "runners, all")[6], "noise is no leak")

	_, doc = render(t, madeUp(100, 120))
	require.Contains(t, doc.Find("#leaks p").Text(), "too short")
	require.Zero(t, doc.Find("#leaks table").Length())
}

// The two that the original explained by hand, and one more.
func TestSpikesAreFoundWithWhatCoincided(t *testing.T) {
	t.Parallel()
	_, doc := render(t, madeUp(100, 3600))
	found := doc.Find("#spikes tbody tr").Map(func(_ int, tr *goquery.Selection) string {
		cells := tr.Find("td").Map(func(_ int, c *goquery.Selection) string { return c.Text() })
		return strings.Join(cells[1:3], "|") + "|" + cells[5]
	})
	require.Len(t, found, 5, "%q", found)
	all := strings.Join(found, "\n")
	require.Contains(t, all, "22:13:20 to 22:13:30|CPU of the backend|clients connecting")
	require.Contains(t, all, "22:13:20 to 22:13:30|CPU of nginx|clients connecting")
	require.Contains(t, all, "22:13:20 to 22:13:30|CPU of the runners|clients connecting")
	require.Regexp(t, `22:23:20\|lateness, max\|TCP retransmits \(in 0.1 % of the run\); a collection in the backend`, all)
	require.Regexp(t, `22:23:20\|TCP retransmits\|a collection`, all, "a signal does not explain itself")
}

func TestHeadroom(t *testing.T) {
	t.Parallel()
	_, doc := render(t, madeUp(100, 3600))
	backend := row(t, doc, "headroom", "backend")
	require.Equal(t, "0.2 %", backend[0], "10 ms in 5 s")
	require.Equal(t, "20.0 %", backend[1])
	require.Equal(t, "2.0 %", backend[3], "for 1,000 streams")
	require.Equal(t, "≈ 50,000", backend[5])
}

// spoil puts text from outside wherever it can come from.
func spoil(r *Run, text string) {
	v := r.Verdict
	v.TestID, v.Plan.BackendURL, v.Plan.Prefix = text, text, text
	v.Reasons, v.Warnings = []string{text}, []string{text}
	v.Checks = []verdict.Check{{Name: text, Limit: text, Actual: text, Why: text}}
	v.ScriptChecks = []verdict.ScriptCheck{{Name: text, Passes: 1}}
	v.Findings = []verdict.Finding{{Kind: text, ID: text, Text: text}}
	for i := range v.Runners {
		v.Runners[i].Host, v.Runners[i].State, v.Runners[i].K6Version = text, text, text
	}
	r.Merged.Runners[0].Script, r.Merged.Runners[0].ScriptHash = text, text
	r.Merged.Connections.Edit(0).Reason, r.Merged.Connections.Edit(0).State = text, ledger.State(text)
	r.Merged.Connections.Edit(1).Findings = []ledger.Finding{{Kind: ledger.Kind(text), Note: text}}
	r.Command, r.Proxies, r.Version, r.Backend, r.Nginx, r.ResourcesFrom = []string{text}, []string{text}, text, text, text, text
	r.Machine.Name, r.Machine.System, r.Machine.Kernel, r.Machine.CPU = text, text, text, text
	r.Baseline.Why = text
	for i := range r.Files {
		r.Files[i].Name, r.Files[i].Content = text, []byte(text)
	}
}

func TestMarkupFromOutsideStaysText(t *testing.T) {
	t.Parallel()
	_, clean := render(t, madeUp(20, 600))
	for _, evil := range []string{
		`<img src=x onerror=alert(1)>`, `</script><script>alert(1)</script>`, `</style></title><svg onload=alert(1)>`,
		`" onmouseover="alert(1)`, `' autofocus onfocus='alert(1)`, `<!--`, `{{.Title}} ${1} &lt;`,
	} {
		r := madeUp(20, 600)
		spoil(r, evil)
		_, doc := render(t, r)
		require.Contains(t, doc.Find(".banner h1").Text(), evil)
		require.GreaterOrEqual(t, strings.Count(doc.Text(), evil), 25, "it stands in the page as text")
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
	r := madeUp(1200, 8*3600)
	lines := bytes.Repeat([]byte("1700000000,1200,0,0,80,0,0,1.234,5.678,9.012,73400320,2.0,20,0,0,0,20971520,0.2,1200,12,1210,31457280,0.1\n"), 5760)
	for i := range lines { // as hard to pack as real figures
		if lines[i] >= '0' && lines[i] <= '9' && i%3 == 0 {
			lines[i] = byte('0' + (i*7919+i/113)%10)
		}
	}
	r.Files[2].Content = lines
	page, _ := render(t, r)
	room := 2_000_000
	if script, err := bundle("page.js"); err != nil || script == "" {
		room -= 80_000 // for the script, which `make build` bundles
	}
	require.Less(t, len(page), room)
	require.NotContains(t, page, "http-equiv=\"refresh\"")
}

// A page has to come out of whatever a run left.
func TestPageOfARunWithoutData(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.BackendURL = "none", "http://h"
	for name, shards := range map[string][]*shard.Shard{
		"no runner left a shard": nil,
		"only a first checkpoint": {{
			Plan: p, Connect: shard.NewHistogram(), FirstNoop: shard.NewHistogram(), Lateness: shard.NewHistogram(),
			Runner: shard.Runner{Index: 1, Segment: "0:1/2", State: shard.Running, StartedUS: madeUpStart * 1e6, EndedUS: madeUpStart * 1e6},
		}},
	} {
		m := shard.Merge(p, shards)
		_, doc := render(t, &Run{Merged: m, Verdict: judged(t, m)})
		require.Equal(t, "INVALID", doc.Find(".banner .word").Text(), name)
		require.True(t, doc.Find(".banner").HasClass("doubt"), name)
		require.NotZero(t, doc.Find("#checks tr").Length(), name)
		require.Zero(t, doc.Find("figure").Length(), name)
	}
}

func TestNothingIsLoadedFromOutside(t *testing.T) {
	t.Parallel()
	_, doc := render(t, madeUp(20, 600))
	require.Zero(t, doc.Find("[src], link, [href]:not([href^='#'])").Length())
	policy, _ := doc.Find("meta[http-equiv='Content-Security-Policy']").Attr("content")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
}

func TestNumbersAreJSON(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Numbers{0, 1200, -3, .1, 1234.56789, 1e12, math.NaN(), math.Inf(1)})
	require.NoError(t, err)
	require.Equal(t, "[0,1200,-3,0.1,1234.6,1e+12,null,null]", string(b))
}

func TestTheControlGroupOnTheCard(t *testing.T) {
	t.Parallel()
	r := madeUp(100, 3600)
	r.Verdict.Control = &verdict.Control{Streams: 40, Received: 144_000, LongestMS: 12.5}
	_, doc := render(t, r)
	require.Equal(t, "40 streams to a reference on the runners' own machine: 144,000 events, 0 late, longest 12.5 ms", row(t, doc, "card", "control group")[0])
}
