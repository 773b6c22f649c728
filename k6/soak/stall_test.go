package soak

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/untested"
)

func TestMaxDelayExcludesOtherTimes(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(-time.Minute)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	w := waits{from: start}
	for i, lateness := range []time.Duration{0, 300 * time.Millisecond, 0, 20 * time.Millisecond} {
		w.add(at(100*(i+1)), lateness)
	}
	w.from = time.Now() // the probe is not due
	require.GreaterOrEqual(t, w.maxDelay(at(110), at(120)), shard.WakeUps*300*time.Millisecond)
	require.GreaterOrEqual(t, w.maxDelay(at(50), at(150)), shard.WakeUps*300*time.Millisecond, "a stall that started before the request must count")
	require.Less(t, w.maxDelay(at(210), at(390)), shard.WakeUps*300*time.Millisecond, "a stall at another time must not count")
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
	w := waits{list: []wait{{from: start, to: at(1), longest: time.Minute}}}
	end := 1
	for range 2 { // merges the older half each time
		for ; len(w.list) < maxWaits; end++ {
			w.list = append(w.list, wait{from: at(end), to: at(end + 1)})
		}
		w.from = at(end)
		end++
		w.add(at(end), 0)
	}
	require.Less(t, len(w.list), maxWaits)
	require.Equal(t, at(end), w.list[len(w.list)-1].to)
	require.GreaterOrEqual(t, w.maxDelay(start, at(end)), shard.WakeUps*time.Minute, "the first wait must count")
}

// If a process needs more CPU than it gets, goroutines wait, even if timers fire in time.
func TestWaitingGoroutinesAreMeasured(t *testing.T) {
	var l schedLatency
	require.Zero(t, l.takeLongest(), "the first call must only start the measurement")
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

func TestSecondsFollowEachOther(t *testing.T) {
	t.Parallel()
	s := newSampler(shard.BucketWidth)
	if s.self == nil {
		untested.Skip(t, "this system does not show processes")
	}
	var p secondSamples
	start := time.UnixMicro(1_700_000_000_000_000)
	for i, stall := range []time.Duration{9, 5 * time.Millisecond, 3 * time.Millisecond} {
		p.add(start.Add(time.Duration(i)*time.Second), s, stall, 4*time.Millisecond)
	}
	require.Len(t, p.list, 2, "the first call must only start the interval")
	require.Equal(t, start.UnixMicro(), p.list[0].FromUS)
	require.Equal(t, p.list[0].ToUS, p.list[1].FromUS, "intervals must be adjacent")
	require.EqualValues(t, 5, p.list[0].StallMS)
	require.EqualValues(t, 3, p.list[1].StallMS)
	require.Equal(t, []int64{5, 4}, []int64{p.list[0].WaitMS, p.list[1].WaitMS})
	require.GreaterOrEqual(t, p.list[1].CPUSeconds, 0.)
	require.Equal(t, 5*time.Millisecond, p.takeStall())
	require.Zero(t, p.takeStall())
}

func TestSecondsHaveStallsWithoutTheUsageOfTheProcess(t *testing.T) {
	t.Parallel()
	var p secondSamples
	start := time.UnixMicro(1_700_000_000_000_000)
	for i := range 2 {
		p.add(start.Add(time.Duration(i)*time.Second), &sampler{}, 5*time.Millisecond, 0)
	}
	require.Equal(t, []shard.Second{{FromUS: start.UnixMicro(), ToUS: start.Add(time.Second).UnixMicro(), StallMS: 5, WaitMS: 5}}, p.list)
}

// The process may have waited for a core before the sampler started, for instance while k6 read the script.
func TestFirstSampleExcludesEarlierRunDelay(t *testing.T) {
	t.Parallel()
	if u, _ := newSampler(shard.BucketWidth).usage(); u.runDelay == 0 {
		untested.Skip(t, "this system does not show run delays")
	}
	require.Positive(t, newSampler(shard.BucketWidth).lastUsage.runDelay)
}

func TestCPUOfShortLastBucket(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 3.4, cpuPercent(.17, 130*time.Millisecond, shard.BucketWidth), .001, "0.17 s of CPU must be 3.4 percent of a bucket of 5 s")
	require.InDelta(t, 50, cpuPercent(2.5, 5*time.Second, shard.BucketWidth), .001)
	require.InDelta(t, 25, cpuPercent(5, 20*time.Second, shard.BucketWidth), .001, "a late sample must count the elapsed time")
	s := newSampler(shard.BucketWidth)
	for range 3 {
		require.LessOrEqual(t, s.sample().CPUPercent, 100*float64(runtime.NumCPU()))
	}
}
