package soak

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

func TestSecondsFollowEachOther(t *testing.T) {
	t.Parallel()
	s := newSampler()
	if s.self == nil {
		untested.Skip(t, "this system does not show processes")
	}
	var p secondSamples
	start := time.UnixMicro(1_700_000_000_000_000)
	for i, stall := range []time.Duration{9, 5 * time.Millisecond, 3 * time.Millisecond} {
		p.add(start.Add(time.Duration(i)*time.Second), s, stall, 4*time.Millisecond)
	}
	require.Len(t, p.list, 2, "the first call starts the interval")
	require.Equal(t, start.UnixMicro(), p.list[0].FromUS)
	require.Equal(t, p.list[0].ToUS, p.list[1].FromUS, "intervals are adjacent")
	require.EqualValues(t, 5, p.list[0].StallMS)
	require.EqualValues(t, 3, p.list[1].StallMS)
	require.Equal(t, []int64{5, 4}, []int64{p.list[0].WaitMS, p.list[1].WaitMS})
	require.GreaterOrEqual(t, p.list[1].CPUSeconds, 0.)
	require.Equal(t, 5*time.Millisecond, p.takeStall())
	require.Zero(t, p.takeStall())
}

// The process may have waited for a core before the sampler started, for instance while k6 read the script.
func TestFirstSampleExcludesEarlierRunDelay(t *testing.T) {
	t.Parallel()
	if u, _ := newSampler().usage(); u.runDelay == 0 {
		untested.Skip(t, "this system does not show run delays")
	}
	require.Positive(t, newSampler().last.runDelay)
}

func TestCPUOfShortLastBucket(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 3.4, cpuPercent(.17, 130*time.Millisecond), .001, "0.17 s of CPU are 3.4 %% of a bucket of 5 s")
	require.InDelta(t, 50, cpuPercent(2.5, 5*time.Second), .001)
	require.InDelta(t, 25, cpuPercent(5, 20*time.Second), .001, "a stopped process samples late")
	s := newSampler()
	for range 3 {
		require.LessOrEqual(t, s.sample().CPUPercent, 100*float64(runtime.NumCPU()))
	}
}
