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
		freed, limited := make(chan time.Time, 10), make(chan time.Time, 10)
		r := &rampWatcher{
			limitThreshold: 2, rampThreshold: 3, quietTime: 3 * time.Second,
			limit: func() { limited <- time.Now() }, free: func() { freed <- time.Now() },
		}
		for range 2 {
			start := time.Now()
			for range 5 {
				time.Sleep(time.Second) // the ramp continues
				r.countConnection()
			}
			require.Empty(t, freed)
			require.Equal(t, 2*time.Second, (<-limited).Sub(start), "the second connection must limit garbage")
			require.Empty(t, limited)
			last := time.Now()
			time.Sleep(time.Minute)
			require.Len(t, freed, 1)
			require.Equal(t, 3*time.Second, (<-freed).Sub(last))
		}
		r.countConnection()
		require.Empty(t, limited)
		r.countConnection()
		time.Sleep(time.Minute)
		require.Empty(t, freed, "two connections must not count as a ramp")
	})
}
