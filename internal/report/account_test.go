package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A suite whose runners count neither streams nor messages has no columns for them. Zeros would contradict the sum.
func TestRunnersOfASuiteWithoutStreams(t *testing.T) {
	t.Parallel()
	v := new(verdict.Verdict)
	v.Layout.Declared, v.Evidence.By, v.Responses = true, verdict.ByNumbers, new(verdict.Responses)
	v.Messages.Totals = ledger.Totals{Expected: 80, Received: 80}
	v.Runners = []verdict.Runner{{Index: 1, State: string(shard.Finished)}, {Index: 2, State: string(shard.Finished)}}
	require.Equal(t, Columns("runner", "host", "state", "#memory", "#CPU time"), runnersOf(v).Tables[0].Columns)
}

// The ledger is not compared for a runner that ended early. A 0 would state that the server sent nothing.
func TestRunnersWithoutComparisonHaveNoServerCount(t *testing.T) {
	t.Parallel()
	v := new(verdict.Verdict)
	v.Server = verdict.Server{Known: true, Sent: 90, Uncompared: 40}
	v.Runners = []verdict.Runner{
		{Index: 1, State: string(shard.Interrupted), Totals: ledger.Totals{Received: 40}},
		{Index: 2, State: string(shard.Finished), Totals: ledger.Totals{Received: 90}, ServerSent: 90},
	}
	table := runnersOf(v).Tables[0]
	column := len(table.Columns) - 3
	require.Equal(t, "server sent", table.Columns[column].Name)
	require.Equal(t, "–", table.Rows[0][column].Text)
	require.Equal(t, "90", table.Rows[1][column].Text)
}
