package sse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRampGivesMemoryBackOnceItIsOver(t *testing.T) {
	t.Parallel()
	freed := make(chan time.Time, 10)
	r := &ramp{least: 3, quiet: 50 * time.Millisecond, free: func() { freed <- time.Now() }}
	for range 2 {
		var last time.Time
		for range 5 {
			last = time.Now()
			r.opened()
			time.Sleep(20 * time.Millisecond)
		}
		require.GreaterOrEqual(t, (<-freed).Sub(last), 50*time.Millisecond)
	}
	r.opened()
	r.opened()
	time.Sleep(80 * time.Millisecond)
	require.Empty(t, freed, "two connections are no ramp")
}
