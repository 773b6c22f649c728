package requests

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
	"golang.org/x/time/rate"
)

// No request waits for --rps beyond the end of its stage.
func TestRPSLimitsAStageWithinItsDuration(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, call := range []string{
		`closed({concurrency: 500, requests: 1000, seconds: 0.5, operations: [{url: %q}]})`,
		`open({rate: 2000, concurrency: 500, seconds: 0.5, timeout: 100, operations: [{url: %q}]})`,
	} {
		v := newVU(t, func(s *lib.State) { s.RPSLimit = rate.NewLimiter(10, 1) })
		start := time.Now()
		c := v.await(call, s.URL)
		require.Less(t, time.Since(start), 30*time.Second, "500 sequential requests at 10/s would take 50 s")
		require.Positive(t, c.Made)
		require.EqualValues(t, 1000, c.Made+c.Dropped)
		require.EqualValues(t, c.Dropped, v.sums()["dropped_iterations"].total)
	}
}

// The duration of a request counts from its intended start. A wait for --rps would look like a slow service.
func TestRPSBelowTheRateThrows(t *testing.T) {
	t.Parallel()
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0,1/2,1")
	require.NoError(t, err)
	v := newVU(t, func(s *lib.State) {
		s.Options.RPS.SetValid(50)
		s.Options.ExecutionSegment, s.Options.ExecutionSegmentSequence = sequence[0], &sequence
	})
	_, err = v.VU.Runtime().RunString(`open({rate: 102, seconds: 1, concurrency: 10, operations: [{url: 'http://h'}]})`)
	require.ErrorContains(t, err, "rps allows 50 requests per second, but this runner's share of rate is 51")
	require.Zero(t, v.await(`open({rate: 100, seconds: 0.05, concurrency: 10, operations: [{url: %q}]})`, serveOK(t, "")).Failed)
}
