package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/resources"
)

// Samples of every second, on an axis of a point every five: each point has what happened since the one before it.
func TestRatesAreOfWholeSteps(t *testing.T) {
	t.Parallel()
	from := int64(1_800_000_000)
	s := &series{from: from, n: 3}
	var samples []resources.Sample
	cpu, again := 1.0, uint64(1)
	for second := range int64(2*step + 1) {
		if second%step == 3 { // busy in one second of five, and not in the last one
			cpu, again = cpu+1, again+10
		}
		now := resources.Sample{Unix: from + second, BackendCPU: cpu}
		now.Retransmits, now.NetworkKnown = again, true
		samples = append(samples, now)
	}
	s.addRates(samples, 2)
	sum := func(column []float64) (all float64) {
		for _, v := range column {
			if !math.IsNaN(v) {
				all += v
			}
		}
		return all
	}
	require.InDelta(t, 20, sum(s.retransmits), 0.001, s.retransmits)
	require.InDelta(t, 20, s.backendCPU[1], 0.001, s.backendCPU)
}
