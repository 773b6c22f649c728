package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Two runners log responses of 1 s each. The action at 100 s truncates two of them, one is refused, and one finishes
// late.
func TestResponsesAreAttributedToTheActionBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	logs := []*shard.Responses{shard.NewResponses(), shard.NewResponses()}
	add := func(runner int, state ledger.ResponseState, from, to float64) {
		at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
		one := ledger.Response{Due: at(from), Ended: at(to), State: state}
		logs[runner].Add(&one, "id", "", time.UnixMilli(0).Add(at(to)), shard.ResponseLimits{})
	}
	for at := 50.; at < 99; at++ {
		add(int(at)%2, ledger.ResponseComplete, at, at+1)
	}
	add(0, ledger.ResponseTruncated, 10, 11) // long before the action
	add(0, ledger.ResponseTruncated, 99.5, 100.2)
	add(1, ledger.ResponseComplete, 99.75, 101.5)
	add(0, ledger.ResponseRefused, 100.5, 100.5)
	add(1, ledger.ResponseComplete, 101, 103.5)
	add(0, ledger.ResponseTruncated, 150, 151)
	add(0, ledger.ResponseAbandoned, 151, 152)
	add(1, ledger.ResponseTruncated, 230, 231) // belongs to the next action
	merged := shard.NewResponses()
	for _, one := range logs {
		require.NoError(t, merged.Merge(one))
	}
	actions := []Action{
		{ActionResult: ActionResult{StartedUnix: 220, EndedUnix: 220}}, {ActionResult: ActionResult{StartedUnix: 100, EndedUnix: 102}}, {},
	}
	responseEffects(actions, merged)
	deploy := actions[1].Responses
	require.Equal(t, map[ledger.ResponseState]int{ledger.ResponseTruncated: 2, ledger.ResponseRefused: 1}, deploy.Faulty)
	require.Equal(t, 2, deploy.InFlight)
	require.InDelta(t, 1.5, *deploy.Drained, .01)
	require.Equal(t, 2, deploy.Complete)
	require.Equal(t, 1, *deploy.Late)
	require.InDelta(t, 2, deploy.LateOver, .01)
	require.InDelta(t, 211, deploy.Until, .01, "a minute after the last faulty response")
	require.Empty(t, deploy.Notes)

	next := actions[0].Responses
	require.Equal(t, map[ledger.ResponseState]int{ledger.ResponseTruncated: 1}, next.Faulty)
	require.Zero(t, next.InFlight)
	require.Nil(t, next.Drained)
	require.Nil(t, next.Late, "no response was complete in the minute before")
	require.Nil(t, actions[2].Responses)
}

func TestAbandonedResponsesAreJoinedWithTheModelLedger(t *testing.T) {
	t.Parallel()
	l := ModelLedger{
		"r-1": {{ID: "r-1", Sent: 7, Left: 1_020_000}},
		"r-2": {{ID: "r-2", Sent: 40}},
		"r-3": {{ID: "r-3", Sent: 1, Left: 1_000_500}, {ID: "r-3", Sent: 6, Left: 1_100_000}}, // the gateway repeated it
	}
	var left []shard.AbandonedResponse
	for _, id := range []string{"r-1", "r-2", "r-3", "other"} {
		left = append(left, shard.AbandonedResponse{ID: id, AtUS: 1_000_000, Chunks: 5})
	}
	c := cancellation(left, l)
	require.EqualValues(t, []int64{3, 2, 2 + 35 + 2}, []int64{c.Checked, c.Cancelled, c.UnreceivedChunks})
	require.InDelta(t, 20, c.After.P50, 1)
	require.InDelta(t, 100, c.After.Max, 1)
	require.Nil(t, cancellation(left, nil))
}
