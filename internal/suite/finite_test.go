package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// answered is a run with responses that end in these states, each with its chunks 10 ms apart.
func answered(t *testing.T, parameters map[string]string, states ...ledger.ResponseState) *Run {
	t.Helper()
	r := runOf("finite", parameters, shard.Stage{Name: "finite", Title: "20/s", Kind: "load", Seconds: 60, Rate: 20})
	m := r.Rounds[0]
	m.Responses = shard.NewResponses()
	for i, state := range states {
		due := time.Duration(i) * time.Second
		one := ledger.Response{Due: due, Started: due + time.Millisecond, Headers: due + 2*time.Millisecond}
		for k := range uint64(4) {
			one.Block(&ledger.Chunk{At: due + time.Duration(50+10*k)*time.Millisecond, Content: true})
			one.Numbered(k+1, 4, true)
		}
		one.Block(&ledger.Chunk{Done: true})
		one.Close(due+100*time.Millisecond, ledger.ClosedInOrder)
		one.State = state
		m.Responses.Add(&one, "r-1", "", began.Add(due), shard.ResponseLimits{First: 100 * time.Millisecond})
	}
	return r
}

func TestFiniteFailsForEachBadState(t *testing.T) {
	t.Parallel()
	for state, want := range map[ledger.ResponseState]verdict.Outcome{
		ledger.ResponseComplete: verdict.Pass, ledger.ResponseTruncated: verdict.Fail, ledger.ResponseError: verdict.Fail, ledger.ResponseRefused: verdict.Fail,
		ledger.ResponseEmpty: verdict.Fail, ledger.ResponseIdle: verdict.Fail, ledger.ResponseAfterDone: verdict.Fail, ledger.ResponseUnfinished: verdict.Fail,
		ledger.ResponseLingering: verdict.Pass, ledger.ResponseAbandoned: verdict.Pass,
	} {
		v := judged(answered(t, nil, ledger.ResponseComplete, state))
		require.Equal(t, want, v.Verdict, "%s: %v", state, v.Reasons)
		require.EqualValues(t, 2, v.Responses.Started)
	}
}

func TestFiniteWithoutACompleteResponseIsInvalid(t *testing.T) {
	t.Parallel()
	require.Equal(t, verdict.Invalid, judged(answered(t, nil)).Verdict)
	require.Equal(t, verdict.Invalid, judged(answered(t, nil, ledger.ResponseLingering)).Verdict)
	require.Equal(t, verdict.Fail, judged(answered(t, nil, ledger.ResponseTruncated)).Verdict)
}

func TestFiniteJudgesGoodputOnlyWithLimits(t *testing.T) {
	t.Parallel()
	v := judged(answered(t, map[string]string{"MAX_TTFT_MS": "10", "MIN_GOODPUT": "100"}, ledger.ResponseComplete))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.EqualValues(t, 1, v.Responses.Good)
	require.InDelta(t, 50, v.Responses.TTFT.P50, 1)
	require.InDelta(t, 10, v.Responses.InterChunkLatency.P50, 1)
}

func TestFiniteLimitsRefusals(t *testing.T) {
	t.Parallel()
	states := []ledger.ResponseState{ledger.ResponseComplete, ledger.ResponseComplete, ledger.ResponseComplete, ledger.ResponseRefused}
	require.Equal(t, verdict.Pass, judged(answered(t, map[string]string{"MAX_REFUSED": "25"}, states...)).Verdict)
	require.Equal(t, verdict.Fail, judged(answered(t, map[string]string{"MAX_REFUSED": "24"}, states...)).Verdict)
}
