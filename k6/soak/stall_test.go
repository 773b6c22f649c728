package soak

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestWaitsExcludeEarlierOnes(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Minute)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	w := waits{from: start}
	for i, lateness := range []time.Duration{0, 300 * time.Millisecond, 0, 20 * time.Millisecond} {
		w.add(at(100*(i+1)), lateness)
	}
	w.from = time.Now() // the probe is not due
	require.GreaterOrEqual(t, w.maxDelay(at(110), at(120)), shard.WakeUps*300*time.Millisecond)
	require.GreaterOrEqual(t, w.maxDelay(at(50), at(150)), shard.WakeUps*300*time.Millisecond, "a stall that started before the request")
	require.Less(t, w.maxDelay(at(210), at(390)), shard.WakeUps*300*time.Millisecond, "a stall at another time")
	require.GreaterOrEqual(t, w.maxDelay(at(310), at(390)), shard.WakeUps*20*time.Millisecond)
	require.GreaterOrEqual(t, w.takeLongest(), 300*time.Millisecond)
	require.Zero(t, w.takeLongest())
}

// An overdue probe may be delayed by the same stall as the requests.
func TestOverdueProbeCounts(t *testing.T) {
	t.Parallel()
	w := waits{from: time.Now().Add(-time.Second)}
	require.InDelta(t, .9*shard.WakeUps, w.maxDelay(time.Now(), time.Now()).Seconds(), 1.5)
}

// The list is limited, but covers requests of any length.
func TestWaitsCoverLongRequests(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Hour)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	w := waits{from: at(maxWaits)}
	for n := range maxWaits {
		w.list = append(w.list, wait{from: at(n), to: at(n + 1)})
	}
	w.list[0].longest = time.Minute
	const added = maxWaits/4 + 2 // merges the older half twice
	for n := range added {
		w.add(at(maxWaits+n+1), 0)
	}
	require.LessOrEqual(t, len(w.list), maxWaits)
	end := at(maxWaits + added)
	require.Equal(t, end, w.list[len(w.list)-1].to)
	require.GreaterOrEqual(t, w.maxDelay(start, end), shard.WakeUps*time.Minute, "the first wait lengthened the request")
}

// If a process needs more CPU than it gets, goroutines wait, even if timers fire in time.
func TestWaitingGoroutinesAreMeasured(t *testing.T) {
	var l schedLatency
	require.Zero(t, l.takeLongest(), "the first call starts the measurement")
	var stop atomic.Bool
	defer stop.Store(true)
	for range 20 * runtime.GOMAXPROCS(0) {
		go func() {
			for !stop.Load() { // uses CPU
			}
		}()
	}
	require.Eventually(t, func() bool { return l.takeLongest() > 50*time.Millisecond }, 20*time.Second, 200*time.Millisecond)
}
