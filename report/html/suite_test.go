package html

import (
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/verdict"
)

// ofASuite is what a ramp-up leaves, as far as the page reads it.
func ofASuite() *Run {
	r := madeUp(100, 3600)
	h := shard.NewHistogram()
	for range 100 {
		h.Record(3 * time.Millisecond)
	}
	r.Merged.Metrics = []shard.Metric{{Name: shard.RequestDuration, Tags: map[string]string{shard.TagStage: "rate-20", shard.TagCode: shard.CodeOK}, Trend: h}}
	r.Verdict = &verdict.Verdict{
		TestID: "t", Verdict: verdict.Pass, Reasons: []string{"20 requests/s were sustained"}, StartedUnix: 1_700_000_000, EndedUnix: 1_700_000_060,
		Suite: &verdict.Suite{
			Name: "rampup", Profile: "smoke", Parameters: map[string]string{"STAGES": "20"},
			Stages: []shard.Stage{{Name: "rate-20", Title: "20/s", Seconds: 30}},
		},
		Facts:   []verdict.Fact{{Name: "breaks", Value: "not reached <b>"}},
		Tables:  []verdict.Table{{Title: "Stages", Note: "what is good", Columns: []string{"stage", "requests"}, Rows: [][]string{{"20/s", "1,000"}}}},
		Figures: []verdict.Figure{{Name: "requests/s sustained", Unit: "requests/s", Value: 20, HigherIsBetter: true}},
	}
	return r
}

func TestThePageOfASuite(t *testing.T) {
	t.Parallel()
	_, doc := render(t, ofASuite())
	require.Equal(t, "PASS", doc.Find(".banner .word").Text())
	require.Contains(t, doc.Find(".tiles dd").First().Text(), "20 /s")
	require.Equal(t, []string{"not reached <b>"}, row(t, doc, "card", "breaks"))
	require.Equal(t, []string{"20"}, row(t, doc, "card", "STAGES"))
	require.Equal(t, []string{"1,000"}, row(t, doc, "table-0", "20/s"))
	require.Contains(t, doc.Find("#table-0").Text(), "what is good")
	require.Equal(t, 1, doc.Find("#curves").Length())
	headings := doc.Find("h2").Map(func(_ int, h *goquery.Selection) string { return h.Text() })
	require.NotContains(t, headings, "Every noop accounted for", "a suite has none")
}
