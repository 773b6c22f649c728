package sse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRampGivesMemoryBackOnceItIsOver(t *testing.T) {
	t.Parallel()
	freed := make(chan time.Time, 10)
	r := &ramp{least: 3, quiet: 300 * time.Millisecond, free: func() { freed <- time.Now() }}
	for range 2 {
		var last time.Time
		for i := range 5 {
			last = time.Now()
			r.opened()
			if i == 3 {
				time.Sleep(100 * time.Millisecond) // the ramp goes on
			}
		}
		require.GreaterOrEqual(t, (<-freed).Sub(last), 300*time.Millisecond)
	}
	r.opened()
	r.opened()
	time.Sleep(350 * time.Millisecond)
	require.Empty(t, freed, "two connections are no ramp")
}
