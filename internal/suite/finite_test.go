package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newFiniteRun returns a run with one response per given state. The chunks of a response are 10 ms apart.
func newFiniteRun(parameters map[string]string, states ...ledger.ResponseState) *Run {
	r := runOf("finite", parameters, shard.Stage{Name: "finite", Title: "20/s", Kind: "load", Seconds: 60, Rate: 20})
	m := r.Rounds[0]
	m.Responses = shard.NewResponses()
	for i, state := range states {
		due := time.Duration(i) * time.Second
		response := ledger.Response{Due: due, Started: due + time.Millisecond, Headers: due + 2*time.Millisecond}
		for k := range uint64(4) {
			response.Block(&ledger.Chunk{At: due + time.Duration(50+10*k)*time.Millisecond, Content: true})
			response.AddNumber(k+1, 4, true)
		}
		response.Block(&ledger.Chunk{Done: true})
		response.Close(due+100*time.Millisecond, ledger.ClosedInOrder)
		response.State = state
		m.Responses.Add(&response, "r-1", "", start.Add(due), shard.ResponseLimits{First: 100 * time.Millisecond})
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
		v := judge(newFiniteRun(nil, ledger.ResponseComplete, state))
		require.Equal(t, want, v.Verdict, "%s: %v", state, v.Reasons)
		require.EqualValues(t, 2, v.Responses.Started)
	}
	v := judge(newFiniteRun(nil, ledger.ResponseError))
	i := slices.IndexFunc(v.Checks, func(c verdict.Check) bool { return c.ID == CheckResponsesComplete })
	require.True(t, v.Checks[i].Unjudged, "0 complete responses do not meet a limit of at least 1")
}

func TestFinitePassNamesTheOtherResponses(t *testing.T) {
	t.Parallel()
	v := judge(newFiniteRun(map[string]string{"MAX_REFUSED": "50"}, ledger.ResponseComplete, ledger.ResponseLingering, ledger.ResponseAbandoned, ledger.ResponseAbandoned, ledger.ResponseRefused))
	require.Contains(t, v.Summary(), "PASS: 1 of 5 responses complete, ")
	require.Contains(t, v.Summary(), "; 1 response refused; 1 response open after the terminal event; 2 responses abandoned by the client")
}

// The chunks of each runner add up to the chunks of the run. If the service numbers chunks from 0, a response that
// starts at 1 lost its first chunk.
func TestFiniteCountsTheChunksOfEachRunner(t *testing.T) {
	t.Parallel()
	r := newFiniteRun(nil, ledger.ResponseComplete, ledger.ResponseComplete)
	m := r.Rounds[0]
	m.Runners = append(m.Runners, m.Runners[0])
	m.Responses.FromZero, m.Responses.FromOne = 1, 1
	m.Runners[0].Responses = &shard.Responses{Chunks: ledger.Totals{Expected: 4, Received: 4}}
	m.Runners[1].Responses = &shard.Responses{Chunks: ledger.Totals{Expected: 4, Received: 4}, FromOne: 1}
	v := judge(r)
	require.Equal(t, ledger.Totals{Expected: 4, Received: 4}, v.Runners[0].Totals)
	require.Equal(t, ledger.Totals{Expected: 5, Received: 4, Missed: 1}, v.Runners[1].Totals)
	require.Equal(t, ledger.Totals{Expected: 9, Received: 8, Missed: 1}, v.Messages.Totals)
}

func TestFiniteJudgesGoodputOnlyWithLimits(t *testing.T) {
	t.Parallel()
	v := judge(newFiniteRun(map[string]string{"MAX_TTFT_MS": "10", "MIN_GOODPUT": "100"}, ledger.ResponseComplete))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.EqualValues(t, 1, v.Responses.Good)
	require.InDelta(t, 50, v.Responses.TTFT.P50, 1)
	require.InDelta(t, 10, v.Responses.InterChunkLatency.P50, 1)
}

// Clients make ten requests per second, and abandon each one after 1 s. The service continues each response for 3 s, so
// 20 abandoned responses are open at a time.
func TestFiniteReadsAGaugeOfOpenRequests(t *testing.T) {
	t.Parallel()
	run := func(parameters map[string]string, gauge func(second float64) *float64) *verdict.Verdict {
		r := runOf("finite", parameters, shard.Stage{Name: "finite", Title: "10/s", Kind: "load", Seconds: 60, Rate: 10})
		r.Rounds[0].Responses = shard.NewResponses()
		for i := range 600 {
			due := time.Duration(i) * time.Second / 10
			response := ledger.Response{Due: due, Started: due}
			response.Block(&ledger.Chunk{At: due, Content: true})
			response.Close(due+time.Second, ledger.ClosedOnPurpose)
			r.Rounds[0].Responses.Add(&response, "r", "", start.Add(due+time.Second), shard.ResponseLimits{})
		}
		for second := -1.; second < 70; second++ {
			at := start.Add(time.Duration(second * float64(time.Second)))
			r.Samples = append(r.Samples, resources.Sample{Unix: at.Unix(), AtUS: at.UnixMicro(), Gauge: gauge(second)})
		}
		return judge(r)
	}
	open := func(second float64) *float64 { // requests of the last 3 s, and 5 of other clients
		value := 5 + 10*(min(max(second, 0), 60)-min(max(second-3, 0), 60))
		return &value
	}
	withGauge := map[string]string{"GAUGE": "running"}
	require.Equal(t, "running: the service continued to answer an abandoned request for 2 s on average; 0 requests were open after the run", fact(run(withGauge, open), "gauge"))
	require.Empty(t, fact(run(nil, open), "gauge"))
	v := run(withGauge, func(float64) *float64 { return nil })
	require.Empty(t, fact(v, "gauge"))
	require.Contains(t, strings.Join(v.Warnings, ""), "the gauge running has fewer than two samples")
}

// Skipped or late requests turn a pass into invalid. They do not hide faults of the service. In floating point,
// 100 × 7/100 is over 7 and 100 × 57/100 is under 57, but both percentages meet their limits.
func TestFiniteLimits(t *testing.T) {
	t.Parallel()
	type states = []ledger.ResponseState
	const complete, refused, lingering = ledger.ResponseComplete, ledger.ResponseRefused, ledger.ResponseLingering
	unchanged := func(*Run) {}
	skip := func(r *Run) { r.Rounds[0].Responses.Skipped = 10 }
	refuseLocally := func(r *Run) { r.Rounds[0].Responses.RefusedLocally = 1 }
	delay := func(r *Run) { r.Rounds[0].Responses.StartDelay.Record(time.Second) }
	limits := func(refused, goodput string) map[string]string {
		return map[string]string{"MAX_REFUSED": refused, "MAX_TTFT_MS": "10", "MIN_GOODPUT": goodput}
	}
	for _, c := range []struct {
		name   string
		edit   func(*Run)
		limits map[string]string
		states states
		want   verdict.Outcome
	}{
		{"no response", unchanged, nil, nil, verdict.Invalid},
		{"no complete response", unchanged, nil, states{lingering}, verdict.Invalid},
		{"truncated only", unchanged, nil, states{ledger.ResponseTruncated}, verdict.Fail},
		{"refused only", unchanged, nil, states{refused}, verdict.Fail},
		{"refused, as allowed, and no complete response", unchanged, map[string]string{"MAX_REFUSED": "50"}, states{refused, lingering}, verdict.Invalid},
		{"refused, up to the limit", unchanged, limits("7", "0"), slices.Concat(slices.Repeat(states{complete}, 93), slices.Repeat(states{refused}, 7)), verdict.Pass},
		{"refused, above the limit", unchanged, limits("24", "0"), states{complete, complete, complete, refused}, verdict.Fail},
		{"refused, because the generator had no port left", refuseLocally, limits("0", "100"), states{complete, refused}, verdict.Invalid},
		{"refused, not only because the generator had no port left", refuseLocally, limits("24", "0"), states{complete, refused, refused}, verdict.Fail},
		{"truncated, and refused because the generator had no port left", refuseLocally, nil, states{ledger.ResponseTruncated, refused}, verdict.Fail},
		{"goodput at the limit", unchanged, limits("0", "57"), slices.Concat(slices.Repeat(states{complete}, 57), slices.Repeat(states{lingering}, 43)), verdict.Pass},
		{"skipped", skip, limits("0", "100"), states{complete}, verdict.Invalid},
		{"skipped, because the others are idle", skip, limits("0", "100"), states{complete, ledger.ResponseIdle}, verdict.Fail},
		{"late", delay, limits("0", "100"), states{complete}, verdict.Invalid},
		{"late, and below the goodput", delay, limits("0", "100"), states{complete, lingering}, verdict.Invalid},
		{"late, and truncated", delay, limits("0", "100"), states{complete, ledger.ResponseTruncated}, verdict.Fail},
	} {
		r := newFiniteRun(c.limits, c.states...)
		c.edit(r)
		v := judge(r)
		require.Equal(t, c.want, v.Verdict, "%s: %v", c.name, v.Reasons)
	}
	require.Contains(t, judge(newFiniteRun(nil)).Reasons, "no request was made")
}
