package sse

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRampReturnsMemoryOnceItIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var freed []time.Time
		r := &ramp{least: 3, quiet: 3 * time.Second, free: func() { freed = append(freed, time.Now()) }}
		for ramps := range 2 {
			for range 5 {
				time.Sleep(time.Second) // the ramp continues
				r.opened()
			}
			require.Len(t, freed, ramps)
			last := time.Now()
			time.Sleep(time.Minute)
			require.Len(t, freed, ramps+1)
			require.Equal(t, 3*time.Second, freed[ramps].Sub(last))
		}
		r.opened()
		r.opened()
		time.Sleep(time.Minute)
		require.Len(t, freed, 2, "two connections are no ramp")
	})
}
