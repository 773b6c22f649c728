package soak

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The progress line reads all streams every few seconds, without an allocation per stream.
func TestProgressAllocatesNothingPerStream(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	_, r := newVU(t)
	require.NoError(t, r.setPlan(newPlan()))
	allocations := func(streams int) float64 {
		for len(r.ledgers) < streams {
			_, err := r.newLedger("d-0")
			require.NoError(t, err)
		}
		return testing.AllocsPerRun(10, func() { r.progress() })
	}
	require.InDelta(t, allocations(1), allocations(1000), 10)
}
