package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// unchecked is a pass of a run that checked no message.
func unchecked() *verdict.Verdict {
	v := &verdict.Verdict{TestID: "t", Verdict: verdict.Pass, Plan: plan.Default(), Reasons: []string{"messages were not checked: the service description has message: 'unchecked'"}}
	v.Plan.Service = "sse"
	v.Service, v.Evidence.By = shard.Service{Name: "sse", Counts: shard.CountsNothing}, verdict.ByNothing
	v.Messages.Heartbeats, v.Messages.Unchecked, v.Messages.Uncounted = 4, 304, 1
	v.Checks = []verdict.Check{verdict.Check{Name: "messages checked", Limit: "any", Pass: true}.NotJudged("nothing says how")}
	return v
}

func TestPassOfConnectionsOnlyIsMarked(t *testing.T) {
	t.Parallel()
	v := unchecked()
	var text, markdown strings.Builder
	require.NoError(t, Text(&text, Brief(v)))
	require.True(t, strings.HasPrefix(text.String(), "PASS (connections only): messages were not checked"), text.String())
	require.Contains(t, text.String(), "\n--  messages checked")
	require.NotContains(t, text.String(), "does not name")
	require.Contains(t, text.String(), "304 events that were not checked")
	require.NoError(t, Markdown(&markdown, Brief(v)))
	require.Contains(t, markdown.String(), "# ⚠️ ")
	require.Contains(t, markdown.String(), "PASS (connections only): messages were not checked")
	require.Contains(t, markdown.String(), "| – messages checked |")
}
