package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPulse(t *testing.T) {
	t.Parallel()
	s := newSampler()
	if s.self == nil {
		t.Skip("this system does not show processes")
	}
	var p pulse
	start := time.UnixMicro(1_700_000_000_000_000)
	for i, stall := range []time.Duration{9, 5 * time.Millisecond, 3 * time.Millisecond} {
		p.beat(start.Add(time.Duration(i)*time.Second), s, stall)
	}
	require.Len(t, p.seconds, 2, "the first beat only begins")
	require.Equal(t, start.UnixMicro(), p.seconds[0].FromUS)
	require.Equal(t, p.seconds[0].ToUS, p.seconds[1].FromUS, "they do not overlap, and leave no gap")
	require.EqualValues(t, 5, p.seconds[0].StallMS)
	require.EqualValues(t, 3, p.seconds[1].StallMS)
	require.GreaterOrEqual(t, p.seconds[1].CPUSeconds, 0.)
	require.Equal(t, 5*time.Millisecond, p.takeStall())
	require.Zero(t, p.takeStall())
}
