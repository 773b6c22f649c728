package soak

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// steppedClock returns t as time.Now would return it after the wall clock stepped forward by an hour: with the same
// monotonic reading and a later wall time. It depends on the layout of time.Time (1 bit hasMonotonic, 33 bits of
// seconds, 30 of nanoseconds), which TestStepOfTheWallClockChangesNothing checks.
func steppedClock(t time.Time) time.Time {
	const hour = 3600 << 30
	*(*uint64)(unsafe.Pointer(&t)) += hour
	return t
}

func TestStepOfTheWallClockChangesNothing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Equal(t, time.Hour, steppedClock(now).Round(0).Sub(now.Round(0)), "the wall time must change")
	require.Zero(t, steppedClock(now).Sub(now), "the monotonic time must not change")

	play := func(clock func(time.Time) time.Time) *shard.Shard {
		r := newRecorder()
		r.start = now
		r.bucket.Unix = bucketOf(now)
		p := plan.Default()
		p.Connections, p.Runners = 1, 1
		require.NoError(t, r.setPlan(p))
		l, err := r.newLedger("a-0")
		require.NoError(t, err)
		o := r.observer(l, false)
		at := now
		o.connecting(at)
		at = at.Add(20 * time.Millisecond)
		o.openStream(at)
		for n := 1; n <= 40; n++ {
			at = at.Add(15 * time.Second)
			receivedAt := at
			if n > 10 && n <= 30 { // the wall clock is wrong for five minutes
				receivedAt = clock(at)
			}
			o.event(receivedAt, &eventstream.Event{
				ID: fmt.Append(nil, n), HasID: true, Data: []byte("0"),
				Comment: fmt.Appendf(nil, "sent=%d", at.Add(-3*time.Millisecond).UnixMicro()),
			})
			if r.isBucketOver(receivedAt) {
				r.endBucket(receivedAt, shard.ProcessUsage{}, nil)
			}
		}
		l.CloseRequested(r.instant(clock(at.Add(time.Second))))
		o.closed(clock(at.Add(time.Second+5*time.Millisecond)), sseclient.Close{Reason: sseclient.ReasonServer, Retry: -1})
		s := &shard.Shard{}
		r.fill(s)
		return writtenShard(s)
	}
	expected := play(func(t time.Time) time.Time { return t })
	require.True(t, expected.Connections[0].ReceivedWithoutFault(), "%+v", expected.Connections[0])
	require.EqualValues(t, 40, expected.Connections[0].Received)
	require.EqualValues(t, 3000, expected.Latency.MinUS)
	require.Equal(t, expected, play(steppedClock), "the shard must not depend on the wall clock")
}
