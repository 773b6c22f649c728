package html

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Nothing is green of a run that checked no message, but its connections.
func TestPageOfConnectionsOnlyIsYellow(t *testing.T) {
	t.Parallel()
	r := madeUp(20, 60)
	m := r.Merged
	m.Plan.Service, m.Service = "sse", shard.Service{Name: "sse", Counts: shard.CountsNothing}
	m.Checks = []shard.Check{{Name: "Get status was 200", Passes: 20}}
	for i := range m.Connections.Len() {
		c := m.Connections.Edit(i)
		c.Record = ledger.Record{ID: c.ID, State: ledger.Completed, Reason: "client", Attempts: 1, Streams: 1, OpenedAt: c.OpenedAt, ClosedAt: c.ClosedAt, Held: m.Plan.Hold(), Open: m.Plan.Hold(), Counts: ledger.Counts{Unchecked: 3}}
	}
	r.Verdict = judged(t, m)
	_, doc := render(t, r)
	require.Equal(t, "PASS (connections only)", doc.Find(".banner .word").Text(), "%v", r.Verdict.Reasons)
	require.True(t, doc.Find(".banner").HasClass("doubt"))
	require.Contains(t, doc.Find(".banner li").Text(), "messages were not checked")
	require.Equal(t, 1, doc.Find(".tiles .good").Length(), "connections held")
	require.Contains(t, doc.Find(".tiles .doubt").Text(), "not checked60 events that were not checked")
	require.Contains(t, row(t, doc, "checks", "– messages checked")[1], "not judged")
}

// A tile of a run in which nothing was expected is not green.
func TestTilesWithoutMessagesAreNotJudged(t *testing.T) {
	t.Parallel()
	r := madeUp(20, 60)
	for i := range r.Merged.Connections.Len() {
		c := r.Merged.Connections.Edit(i)
		c.Record = ledger.Record{ID: c.ID, State: ledger.Refused, Reason: "status 404", Attempts: 1, ClosedAt: c.ClosedAt}
	}
	r.Verdict = judged(t, r.Merged)
	_, doc := render(t, r)
	require.Equal(t, 0, doc.Find(".tiles .good").Length(), doc.Find(".tiles").Text())
	require.Contains(t, doc.Find(".tiles").Text(), "not judged: none was expected")
}
