package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var fixedParameters = map[string]string{"MAX_FAILED_PERCENT": "1", "MAX_P95_MS": "0", "MIN_ANSWERED_PERCENT": "99"}

// newThroughputRun returns a throughput run without the responses of its last level.
func newThroughputRun() *Run {
	return runOf("throughput", fixedParameters,
		shard.Stage{Name: "warmup", Kind: kindWarmup, Seconds: 5, Requests: 10},
		shard.Stage{Name: "volume-1000", Title: "1000 requests", Kind: kindVolume, Start: 10, Seconds: 10, Concurrency: 50, Requests: 1000},
		shard.Stage{Name: "level-5", Title: "5 at a time", Kind: kindLoad, Start: 30, Seconds: 10, Concurrency: 5, Requests: 1900},
		shard.Stage{Name: "level-10", Title: "10 at a time", Kind: kindLoad, Start: 50, Seconds: 10, Concurrency: 10, Requests: 2000},
	).addAnswers("warmup", 10, 99).addAnswers("volume-1000", 500, 5).addAnswers("volume-1000", 500, 7, shard.TagEndpoint, "math.add").addAnswers("level-5", 1900, 10)
}

func TestThroughput(t *testing.T) {
	t.Parallel()
	v := judge(newThroughputRun().addAnswers("level-10", 2000, 20))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "4,900 made, 4,900 good, 0 (0.00 %) failed, 0 not made", fact(v, "requests"), "the warm-up must not be counted")
	require.Equal(t, "200 responses/s with 10 at a time", fact(v, "peak"))
	require.Contains(t, fact(v, "sufficient"), "a concurrency of 5 reaches 90 % of the peak")
	require.Equal(t, []string{"10 at a time", "2,000", "0", "200", "20.0", "good", "–"}, table(v, "By requests at a time").Rows[1])
	require.Equal(t, []string{"1000 requests", "1,000", "0", "100", "7.00", "good", "–"}, table(v, "By number of requests").Rows[0])
	require.Equal(t, []string{"math.add", "500", "0", "0", "17"}, table(v, "By endpoint").Rows[1], "500 in 30 s of stages")
	require.Equal(t, "peak responses/s", v.Metrics[0].Name)
	require.InDelta(t, 200, v.Metrics[0].Value, 1e-9)

	v = judge(newThroughputRun().addAnswers("level-10", 1000, 20).addAnswers("level-10", 1000, 20, shard.TagCode, "status-503"))
	require.Equal(t, []string{"3,900 correct responses, 190 per second at the peak; 1,000 (20.41 %) of 4,900 requests failed; not sustained: 10 at a time"}, v.Reasons)
}

func TestServiceWithoutResponses(t *testing.T) {
	t.Parallel()
	v := judge(runOf("throughput", fixedParameters, shard.Stage{Name: "level-5", Title: "5 at a time", Kind: kindLoad, Start: 30, Seconds: 10, Concurrency: 5, Requests: 1900}).
		addAnswers("level-5", 1900, 10, shard.TagCode, "status-404"))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, v.Reasons, "the lowest load was not sustained: 100.00 % failed, mostly by status 404, 0.0 % answered")
	require.Equal(t, "1,900 made, 0 good, 1,900 (100.00 %) failed, 0 not made", fact(v, "requests"))
	require.Equal(t, "–", table(v, "By requests at a time").Rows[0][4], "without a good response there must be no p95")
	require.Empty(t, fact(v, "sufficient"))
}

func TestPeakWithSaturatedGeneratorIsALowerBound(t *testing.T) {
	t.Parallel()
	v := judge(newThroughputRun().addAnswers("level-10", 2000, 20).addSeconds(50, 1, shard.Second{CPUSeconds: .9, StallMS: 900}))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "peak"), "a lower bound, because the load generator was saturated: a runner stalled for 900 ms")
	require.Equal(t, "generator", table(v, "By requests at a time").Rows[1][6])
	require.Contains(t, v.Warnings[0], "at 1 of 3 loads the load generator was saturated")
}

// A level ends after its fixed duration: a request that hangs until its timeout lowers neither the responses per second
// nor the use of the cores. Waits of the generator until that timeout still count.
func TestHangingRequestsAreExcluded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage     shard.Stage
		perSecond float64
	}{
		"closed":               {shard.Stage{Concurrency: 50}, 100},
		"open":                 {shard.Stage{Rate: 100, Concurrency: 50}, 100},
		"a number of requests": {shard.Stage{Concurrency: 50, Requests: 1000}, 50},
	} {
		st := c.stage
		st.Name, st.Kind, st.Seconds = "a", kindLoad, 10
		r := runOf("throughput", fixedParameters, st).addAnswers("a", 1000, 5).addAnswers("a", 1, 10_000, shard.TagCode, "net-1050")
		m := r.Rounds[0]
		m.Metrics[1].LastUS += 10e6
		r.addSeconds(0, 10, shard.Second{CPUSeconds: 1}).addSeconds(10, 10, shard.Second{WaitMS: 300})
		got := r.stages()[0]
		require.InDelta(t, c.perSecond, got.PerSecond(), .06, name)
		require.InDelta(t, c.perSecond, got.Machine.Runners, .01, name)
		require.Equal(t, 300*time.Millisecond, got.Machine.Wait, name)
		require.EqualValues(t, 1001, got.Total(), name)
	}
	for late, perSecond := range map[int]float64{0: 100, 5: 99.5, 500: 50, 1000: 0} {
		r := runOf("throughput", fixedParameters, shard.Stage{Name: "a", Kind: kindLoad, Seconds: 10, Concurrency: 500}).addAnswers("a", 1000, 5).delayAnswers("a", late, 300)
		r.Rounds[0].Metrics[0].LastUS += 10e6
		require.InDelta(t, perSecond, r.stages()[0].PerSecond(), .01, "%d of the responses were late", late)
	}
}

func TestOnlyRefusedRequestsAreRefusals(t *testing.T) {
	t.Parallel()
	for code, isRefusal := range map[string]bool{
		"status-503": true, shard.CodeNet + "1212": true, shard.CodeNet + "1220": false, shard.CodeWrongContent: false, shard.CodeTruncated: false,
	} {
		r := newRampRun(20)
		r.addAnswers("rate-20", 100, 1, shard.TagCode, code)
		require.Equal(t, isRefusal, fact(judge(r), "refusals") != "", code)
	}
}
