package main

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tickAt and dueAt are inverses of each other, and slots do not drift.
func TestWheelTicks(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 15 * time.Second, 7*time.Second + 1} {
		for _, schedule := range []string{scheduleBroadcast, scheduleStaggered} {
			w := newWheel(interval, schedule)
			n := int64(len(w.buckets))
			for tick := range 3 * n {
				require.Equal(t, tick, w.tickAt(w.dueAt(tick)))
				if tick > 0 {
					require.Equal(t, tick-1, w.tickAt(w.dueAt(tick)-1))
				}
			}
			require.Equal(t, 1000*interval, w.dueAt(1000*n))
		}
	}
	require.Len(t, newWheel(time.Second, scheduleBroadcast).buckets, 1)
	require.Len(t, newWheel(15*time.Second, scheduleStaggered).buckets, maxBuckets)
}

// The sizes of buckets never differ by more than one.
func TestWheelSpread(t *testing.T) {
	t.Parallel()
	w := newWheel(100*time.Millisecond, scheduleStaggered)
	var list []*device
	for range 333 {
		d := &device{bucket: -1}
		w.add(d)
		list = append(list, d)
	}
	for i, b := range w.buckets {
		require.InDelta(t, 333/float64(len(w.buckets)), len(b), .99)
		for index, d := range b {
			require.Equal(t, [2]int32{int32(i), int32(index)}, [2]int32{d.bucket, d.index})
		}
	}
	for _, d := range list {
		w.remove(d)
	}
	for _, b := range w.buckets {
		require.Empty(t, b)
	}
}

// All ids get their noops at the same times (start + k intervals), regardless of when they connect.
func TestBroadcastSlots(t *testing.T) {
	t.Parallel()
	const interval = time.Second
	s := startTest(t, "--noop-interval=1s")
	var list []*stream
	for i := range 5 {
		list = append(list, s.open(fmt.Sprintf("d-%d", i)))
		time.Sleep(interval / 20) // the ids must connect at different times
	}
	passes := map[int64]bool{}
	for _, c := range list {
		for n := uint64(1); n <= 2; n++ {
			e := c.next()
			require.Equal(t, n, e.id)
			passes[e.sent] = true
			after := time.Duration(e.sent-s.clk.unix) * time.Microsecond % interval
			require.Less(t, after, interval*3/4, "a noop must not be sent in the last quarter of its interval")
		}
	}
	require.LessOrEqual(t, len(passes), 4, "10 noops must be sent in at most 4 slots")
}

// Ids are spread over the interval, and each gets exactly one noop per interval.
func TestStaggeredSlots(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1s", "--noop-schedule=staggered")
	const ids, noops = 20, 3
	var list []*stream
	for i := range ids {
		list = append(list, s.open(fmt.Sprintf("d-%d", i)))
	}
	quarters := [4]int{}
	for _, c := range list {
		var first int64
		var quarter []int64 // the median is used, in case the process was delayed once
		for n := uint64(1); n <= noops; n++ {
			e := c.next()
			require.Equal(t, n, e.id)
			if n == 1 {
				first = e.sent
			}
			quarter = append(quarter, (e.sent-s.clk.unix)%1_000_000/250_000)
			require.InDelta(t, first+int64(n-1)*1_000_000, e.sent, 750_000)
		}
		slices.Sort(quarter)
		quarters[quarter[noops/2]]++
	}
	for _, n := range quarters {
		require.InDelta(t, ids/4, n, 3, "ids in each quarter of the interval: %v", quarters)
	}
}

// After a pause of the process, the noops of the missed slots are sent late. None is omitted.
func TestMissedSlotsAreServedAfterAPause(t *testing.T) {
	t.Parallel()
	p := startChild(t, "--noop-interval=50ms")
	c := openOn(t, dial(t, p.addr), "a")
	first := c.next()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(2 * time.Second) // the pause
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	var last event
	for range 30 {
		last = c.next()
	}
	require.Equal(t, uint64(31), last.id)
	// With omitted slots the mean would be over 110 ms.
	mean := time.Duration(last.sent-first.sent) * time.Microsecond / 30
	require.InDelta(t, 50*time.Millisecond, mean, float64(30*time.Millisecond))
}

// Each of many streams receives the noops that the ledger counts as sent.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=200ms")
	const ids = 2 * minBatch
	list := make([]*stream, ids)
	for i := range list {
		list[i] = s.open(fmt.Sprintf("m-%d", i))
	}
	list[ids-1].numbers(3)
	for i := range list {
		s.hub.call(func() { s.hub.forceDisconnect(fmt.Sprintf("m-%d", i)) })
	}
	rows := s.rows("m-")
	require.Len(t, rows, ids)
	for i, c := range list {
		events, err := c.readAll()
		require.NoError(t, err)
		row := rows[fmt.Sprintf("m-%d", i)]
		got := numbersOf(events)
		if i == ids-1 {
			got = append(numbersFrom(1, 3), got...)
		}
		require.Equal(t, numbersFrom(1, row.Last), got)
		require.Equal(t, uint64(len(got)), row.Sent)
		require.Equal(t, uint64(1), row.First)
		require.Equal(t, "forcedisconnect", row.Closed)
		require.False(t, row.Slow)
	}
}
