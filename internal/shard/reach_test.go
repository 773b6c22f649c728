package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReachKeepsTheMaximumOfEachMessage(t *testing.T) {
	a, b := NewReach(2, 3), NewReach(2, 3)
	a.Record(0, 1, 5*time.Millisecond)
	a.Record(0, 1, 2*time.Millisecond)
	b.Record(0, 1, 9*time.Millisecond)
	b.Record(1, 3, time.Second)
	b.Record(1, 4, time.Hour) // above the maximum number
	b.Record(7, 1, time.Hour)
	a.Merge(b)
	shard := newSmallShard()
	shard.Reach = a
	read, err := reread(t, shard)
	require.NoError(t, err)
	require.Equal(t, a, read.Reach)
	h := read.Reach.Histogram()
	if h.Count() != 2 || h.Quantile(.5).Round(time.Millisecond) != 9*time.Millisecond || h.Max() < time.Second || h.Max() > 1008*time.Millisecond {
		t.Errorf("got %d messages with the median %v and the maximum %v, want 2 messages with 9 ms and 1 s", h.Count(), h.Quantile(.5), h.Max())
	}
}

func TestReachCodesGrowWithTheDuration(t *testing.T) {
	last := uint16(0)
	for us := int64(0); us < highestMicros; us += 1 + us/500 {
		d := time.Duration(us) * time.Microsecond
		code := reachCode(d)
		if back := reachOf(code); code < last || back < d || float64(back) > 1.008*float64(d)+float64(time.Microsecond) {
			t.Fatalf("the duration %v has code %d, the previous one has code %d; the code is decoded as %v", d, code, last, back)
		}
		last = code
	}
}

// A run of an hour with 1200 messages per second to one topic has 4.3 million messages.
func TestReachOfMillionsOfMessages(t *testing.T) {
	t.Parallel()
	const count = 1200 * 3600
	s := newSmallShard()
	s.Reach = NewReach(1, count)
	for number := range uint64(count) {
		s.Reach.Record(0, number+1, time.Duration(number%1000)*time.Microsecond)
	}
	read, err := reread(t, s)
	require.NoError(t, err)
	require.Equal(t, s.Reach.Histogram(), read.Reach.Histogram())
}
