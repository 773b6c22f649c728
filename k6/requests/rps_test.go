package requests

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
	"golang.org/x/time/rate"
)

// With k6's --rps no request begins after the time of its stage, and none waits for a turn that it cannot have.
func TestRPSHoldsBackWithinTheTimeOfAStage(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, call := range []string{
		`closed({concurrency: 500, requests: 1000, seconds: 0.5, operations: [{url: %q}]})`,
		`open({rate: 2000, concurrency: 500, seconds: 0.5, timeout: 100, operations: [{url: %q}]})`,
	} {
		v := newVU(t, func(s *lib.State) { s.RPSLimit = rate.NewLimiter(10, 1) })
		began := time.Now()
		c := v.await(call, s.URL)
		require.Less(t, time.Since(began), 30*time.Second, "500 in turn, ten a second, would take 50 s")
		require.Positive(t, c.Made)
		require.EqualValues(t, 1000, c.Made+c.Dropped)
		require.EqualValues(t, c.Dropped, v.sums()["dropped_iterations"].total)
	}
}

// The time of a request counts from when it was due: what --rps holds back would look like a slow service.
func TestRPSBelowTheRateThrows(t *testing.T) {
	t.Parallel()
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0,1/2,1")
	require.NoError(t, err)
	v := newVU(t, func(s *lib.State) {
		s.Options.RPS.SetValid(50)
		s.Options.ExecutionSegment, s.Options.ExecutionSegmentSequence = sequence[0], &sequence
	})
	_, err = v.VU.Runtime().RunString(`open({rate: 102, seconds: 1, concurrency: 10, operations: [{url: 'http://h'}]})`)
	require.ErrorContains(t, err, "rps allows 50 requests per second, and 51 are due here")
	require.Zero(t, v.await(`open({rate: 100, seconds: 0.05, concurrency: 10, operations: [{url: %q}]})`, says200(t, "")).Failed)
}
