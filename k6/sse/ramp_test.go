package sse

import (
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRampGivesMemoryBackOnceItIsOver(t *testing.T) {
	t.Parallel()
	freed := make(chan time.Time, 10)
	var begun, ended atomic.Int32
	r := &ramp{
		least: 3, quiet: 300 * time.Millisecond, free: func() { freed <- time.Now() },
		hurry: func() func() { begun.Add(1); return func() { ended.Add(1) } },
	}
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
		require.Equal(t, begun.Load(), ended.Load())
	}
	require.EqualValues(t, 2, begun.Load())
	r.opened()
	r.opened()
	time.Sleep(350 * time.Millisecond)
	require.Empty(t, freed, "two connections are no ramp")
}

// What GOGC says counts where it collects more often than a ramp does, and after a ramp.
func TestARampLeavesGOGCAsItWas(t *testing.T) {
	for was, during := range map[int]int{100: thriftyGCPercent, 5: 5, -1: -1} {
		before := debug.SetGCPercent(was)
		var own thrift
		usual := own.ramp()
		own.ramp()() // another one that ends earlier
		now := debug.SetGCPercent(during)
		usual()
		after := debug.SetGCPercent(before)
		require.Equal(t, []int{during, was}, []int{now, after})
	}
}

// Held streams leave room for 1.5 MB of garbage, until that is less than a tenth of what lives: but not in a ramp.
func TestHeldStreamsLeaveRoomForSomeGarbage(t *testing.T) {
	for live, percent := range map[uint64]int{0: 100 * heldGarbage, heldGarbage / 2: 200, 2 * heldGarbage: 50, 1 << 30: thriftyGCPercent} {
		require.Equal(t, percent, heldGCPercent(live))
	}
	before := debug.SetGCPercent(1000)
	defer debug.SetGCPercent(before)
	own := thrift{live: func() uint64 { return 2 * heldGarbage }}
	usual, ramp := own.hold(), own.ramp()
	during := debug.SetGCPercent(-1)
	ramp()
	after := debug.SetGCPercent(-1)
	usual()
	require.Equal(t, []int{thriftyGCPercent, 50, 1000}, []int{during, after, debug.SetGCPercent(-1)})
	require.Positive(t, liveHeap())
}
