package soak

import (
	"fmt"
	"strconv"
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
	require.Equal(t, time.Hour, steppedClock(now).Round(0).Sub(now.Round(0)), "the wall time changes")
	require.Zero(t, steppedClock(now).Sub(now), "the monotonic time does not change")

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
	require.True(t, expected.Connections[0].Faultless(), "%+v", expected.Connections[0])
	require.EqualValues(t, 40, expected.Connections[0].Received)
	require.EqualValues(t, 3000, expected.Latency.MinUS)
	require.Equal(t, expected, play(steppedClock), "the shard does not depend on the wall clock")
}

// The recorder of a run of 72 hours counts exactly, and its shard stays small. The test sets the time of each arrival.
func TestRecorderOfThreeDays(t *testing.T) {
	t.Parallel()
	const clients, length = 12, 72 * time.Hour
	p, r := newPlan(), newRecorder()
	p.Connections, p.Seconds = clients, int(length/time.Second)+5
	require.NoError(t, r.setPlan(p))
	var observers []*observer
	begin := r.start.Add(time.Second)
	for i := range clients {
		o := newObserver(t, r, p.DeviceID(i))
		o.connect(begin)
		observers = append(observers, o)
	}
	noop, lost := 0, uint64(0)
	for at := begin.Add(shard.BucketWidth); at.Before(begin.Add(length)); at = at.Add(shard.BucketWidth) {
		if due := int(at.Sub(begin) / p.Interval()); due > noop {
			noop = due
			for i, o := range observers {
				if hour := at.Sub(begin) / time.Hour; i == int(hour)%clients && noop%240 == 7 { // once per hour
					lost++
					continue
				}
				o.event(at, event(strconv.Itoa(noop), "0", ""))
			}
		}
		r.endBucket(at, shard.ProcessUsage{RSS: 80 << 20}, nil)
	}
	for _, o := range observers {
		o.endBy(sseclient.ReasonServer, begin.Add(length))
	}

	s := &shard.Shard{Schema: shard.Schema}
	r.fill(s)
	s.Runner = shard.Runner{TestID: p.TestID, Index: 1, Segment: "0:1", State: shard.Finished, StartedUS: r.start.UnixMicro(), EndedUS: begin.Add(length).UnixMicro()}
	file, err := new(shard.Encoder).Encode(s)
	require.NoError(t, err)
	require.Less(t, len(file), 4<<20, "shard of %d buckets", len(s.Series))

	m := shard.Merge(p, []*shard.Shard{writtenShard(s)})
	require.Empty(t, m.Problems)
	var received, missing uint64
	for _, c := range m.Connections.All() {
		received, missing = received+c.Received, missing+c.Missed()
	}
	require.Equal(t, []uint64{clients*uint64(noop) - 72, 72}, []uint64{received, missing})
	require.EqualValues(t, 72, lost)
	require.Zero(t, m.Lateness.CountBy([]time.Duration{p.LateLimit()})[1], "no message was late")
}
