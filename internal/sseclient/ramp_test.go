package sseclient

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRampReturnsMemoryAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		freed := make(chan time.Time, 10)
		r := &ramp{threshold: 3, quiet: 3 * time.Second, free: func() { freed <- time.Now() }}
		for range 2 {
			for range 5 {
				time.Sleep(time.Second) // the ramp continues
				r.opened()
			}
			require.Empty(t, freed)
			last := time.Now()
			time.Sleep(time.Minute)
			require.Len(t, freed, 1)
			require.Equal(t, 3*time.Second, (<-freed).Sub(last))
		}
		r.opened()
		r.opened()
		time.Sleep(time.Minute)
		require.Empty(t, freed, "two connections must not count as a ramp")
	})
}
