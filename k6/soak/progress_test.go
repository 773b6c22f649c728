package soak

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every few seconds all streams are looked through: that makes no garbage for each of them.
func TestProgressAllocatesNothingPerStream(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	_, r := newVU(t)
	require.NoError(t, r.setPlan(thePlan()))
	look := func(streams int) float64 {
		for len(r.ledgers) < streams {
			_, err := r.newLedger("d-0")
			require.NoError(t, err)
		}
		return testing.AllocsPerRun(10, func() { r.progress() })
	}
	require.InDelta(t, look(1), look(1000), 10)
}
