package soak

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

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
		r.endBucket(at, shard.Process{RSS: 80 << 20}, nil)
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
