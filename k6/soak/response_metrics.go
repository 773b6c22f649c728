package soak

import (
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// responsesMetric counts the finite responses that have ended, by the tag `state`.
const responsesMetric = "soak_responses"

// responseBuckets are the metrics of the latencies of complete responses. verdict.json also has these latencies. Names
// and bounds follow OpenTelemetry: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/
var responseBuckets = []bucketMetric{
	{"gen_ai_client_operation_time_to_first_chunk_seconds_bucket", operationBounds},
	{"gen_ai_client_operation_time_per_output_chunk_seconds_bucket", operationBounds},
	{"gen_ai_client_operation_duration_seconds_bucket", operationBounds},
}

// operationBounds are 10 ms, 20 ms, 40 ms and so on, up to 81.92 s.
var operationBounds = func() (out []time.Duration) {
	for d := 10 * time.Millisecond; d <= 82*time.Second; d *= 2 {
		out = append(out, d)
	}
	return out
}()

type responseSnapshot struct {
	runners   int
	inFlight  int64
	states    map[ledger.ResponseState]int64
	durations []*shard.Histogram // in the order of responseBuckets
}

// snapshot returns the current state, nil if r is nil.
func (r *responses) snapshot() *responseSnapshot {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &responseSnapshot{
		runners: r.runners, inFlight: r.inFlight, states: map[ledger.ResponseState]int64{},
		durations: []*shard.Histogram{r.sum.First.Copy(), r.sum.Gap.Copy(), r.sum.Total.Copy()},
	}
	for _, state := range ledger.ResponseStates { // so that each counter starts at 0
		s.states[state] = r.sum.States[state]
	}
	return s
}

// responsesOf returns samples of the growth of the counts since the last call.
func (p *telemetry) responsesOf(s *responseSnapshot, tags *metrics.TagSet) (out metrics.Samples) {
	for state, n := range s.states {
		out = append(out, p.sampleOf(responsesMetric, tags.With("state", string(state)), float64(n-p.states[state])))
		p.states[state] = n
	}
	for i := range responseBuckets {
		out = append(out, p.bucketsOf(&responseBuckets[i], s.durations[i], tags)...)
	}
	return out
}
