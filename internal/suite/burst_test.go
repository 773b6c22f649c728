package suite

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var burstParameters = map[string]string{"MAX_FAILED_PERCENT": "1", "MAX_P95_MS": "5000", "MIN_ANSWERED_PERCENT": "99"}

// newBurstRun returns a run with two bursts. The first one was answered in 100 ms, and its health check was good.
func newBurstRun() *Run {
	r := runOf("burst", burstParameters,
		shard.Stage{Name: "burst-100", Title: "100 at once", Kind: kindLoad, Seconds: 10, Concurrency: 100, Requests: 100},
		shard.Stage{Name: "health-burst-100", Kind: kindHealth, Target: "burst-100", Start: 11, Seconds: 1, Requests: 1},
		shard.Stage{Name: "burst-200", Title: "200 at once", Kind: kindLoad, Start: 13, Seconds: 10, Concurrency: 200, Requests: 200},
		shard.Stage{Name: "health-burst-200", Kind: kindHealth, Target: "burst-200", Start: 24, Seconds: 1, Requests: 1},
	)
	r.addAnswers("burst-100", 100, 100).addAnswers("health-burst-100", 1, 1)
	return r
}

func TestBurst(t *testing.T) {
	t.Parallel()
	v := judge(newBurstRun().addAnswers("burst-200", 200, 100).addAnswers("health-burst-200", 1, 1))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "breaking point"), "not reached: 200 requests at once were sustained")
	require.Equal(t, []string{"200", "0", "0 ms", "–", "20", "100", "good", "good"}, table(v, "Bursts").Rows[1])
	require.Equal(t, "300", table(v, "Latency of good responses, ms").Rows[2][1], "health checks are not listed, so they must not be in the total")
	require.Equal(t, []string{"conservative", "2.5×", "80", "loads that must not fail"}, table(v, "Recommended maximum loads").Rows[0])

	v = judge(newBurstRun().addAnswers("burst-200", 150, 100).addAnswers("burst-200", 50, 1, shard.TagCode, "status-502").addAnswers("health-burst-200", 1, 1))
	require.Equal(t, verdict.Pass, v.Verdict, "refusals in a burst must set the breaking point, not fail the run: %v", v.Reasons)
	require.Contains(t, fact(v, "breaking point"), "between 100 and 200 requests at once (25.00 % failed, mostly by status 502, 75.0 % answered)")
	require.Equal(t, "bad", table(v, "Bursts").Rows[1][7])
}

func TestServiceUnhealthyAfterABurst(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Run{
		"an error status": newBurstRun().addAnswers("burst-200", 200, 100).addAnswers("health-burst-200", 1, 1, shard.TagCode, "status-500"),
		"no response":     newBurstRun().addAnswers("burst-200", 200, 100),
	} {
		v := judge(r)
		require.Equal(t, verdict.Fail, v.Verdict, name)
		require.Contains(t, v.Reasons, "after burst-200 the health check failed", name)
		require.Contains(t, fact(v, "breaking point"), "between 100 and 200", name)
	}
}

// A health check may be good although the service responds to other requests with errors.
func TestErrorsAfterTheBursts(t *testing.T) {
	t.Parallel()
	sequence := func(failed int) *verdict.Verdict {
		r := newBurstRun().addAnswers("burst-200", 200, 100).addAnswers("health-burst-200", 1, 1)
		stages := &r.Rounds[0].Suite.Stages
		*stages = append(*stages, shard.Stage{Name: "sequence", Title: "1000 in sequence", Kind: kindSequence, Start: 26, Seconds: 30, Concurrency: 1, Requests: 1000})
		return judge(r.addAnswers("sequence", 1000-failed, 1).addAnswers("sequence", failed, 1, shard.TagCode, "status-500"))
	}
	require.Equal(t, verdict.Pass, sequence(10).Verdict)
	v := sequence(11)
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, []string{"after the bursts, the requests in sequence were not good: 1.10 % failed, mostly by status 500"}, v.Reasons)
	require.Equal(t, "2 of 2, but not in sequence", v.Checks[slices.IndexFunc(v.Checks, func(c verdict.Check) bool { return c.ID == CheckHealth })].Actual)
}

// If the generator has no port left for the health check, it is unknown whether the service recovered.
func TestHealthCheckWithoutAPort(t *testing.T) {
	t.Parallel()
	r := newBurstRun().addAnswers("burst-200", 200, 100).addAnswers("health-burst-200", 1, 1, shard.TagCode, shard.CodeNoPort)
	v := judge(r)
	require.Equal(t, verdict.Invalid, v.Verdict, v.Reasons)
	require.Equal(t, []string{"after burst-200 the health check failed because of the load generator, so it is unknown whether the service recovered"}, v.Reasons)
	require.Equal(t, []string{"unknown", "good"}, table(v, "Bursts").Rows[1][6:])
	require.Equal(t, verdict.Fail, judge(r.addAnswers("health-burst-200", 1, 1, shard.TagCode, "status-500")).Verdict)
}

// Each runner measures from its own start, so only the times of the samples show that half of a burst was sent a second
// after the other half.
func TestSentWithinOfAllRunners(t *testing.T) {
	t.Parallel()
	for _, apart := range []int64{0, 1000} {
		r := newBurstRun()
		m := shard.Metric{Name: "sent_after", Type: "trend", Tags: map[string]string{shard.TagStage: "burst-100"}, Count: 50, Sum: 250, Min: 1, Max: 13, Trend: shard.NewHistogram()}
		for i := range int64(2) {
			m.FirstUS = start.UnixMicro() + i*apart*1000
			m.LastUS = m.FirstUS + 13_000
			r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, m)
		}
		require.Equal(t, fmt.Sprintf("%d ms", 12+apart), table(judge(r), "Bursts").Rows[0][2])
	}
}

// X-In-Flight may count the requests of other clients, or be wrong.
func TestMoreInFlightThanSent(t *testing.T) {
	t.Parallel()
	for inFlight, want := range map[float64]string{100: "100", 101: "101 (more than in the burst)"} {
		r := newBurstRun()
		r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: "server_in_flight", Type: "trend", Tags: map[string]string{shard.TagStage: "burst-100"}, Count: 100, Min: 1, Max: inFlight, Trend: shard.NewHistogram()})
		require.Equal(t, want, table(judge(r), "Bursts").Rows[0][3])
	}
}
