package soak

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// feedNoops opens a gzip stream whose noops arrive the given number of seconds after its headers.
func feedNoops(o *observer, opened time.Time, after ...float64) {
	o.connecting(opened)
	o.openStream(opened, func(r *sseclient.Response) { r.Header.Set("Content-Encoding", "gzip") })
	for n, s := range after {
		o.event(opened.Add(time.Duration(s*float64(time.Second))), event(strconv.Itoa(n+1), "0", ""))
	}
}

// Messages that were due separately but arrive together are distinguished from others, and from a replay.
func TestCompressedBursts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after    []float64
		want     shard.Coding
		together int64 // messages within a millisecond of the previous one, except those with the first message
	}{
		"one by one":          {[]float64{15, 30, 45.5, 60}, shard.Coding{Messages: 4}, 0},
		"two bursts":          {[]float64{15, 60, 60, 60.0005, 75, 105, 105.2}, shard.Coding{Messages: 7, Bursts: 2, BurstMessages: 5}, 2},
		"late first messages": {[]float64{46, 46, 46}, shard.Coding{Messages: 3, Bursts: 1, BurstMessages: 3}, 0},
		"a replay at first":   {[]float64{0.1, 0.1, 0.1, 15}, shard.Coding{Messages: 4}, 0},
	} {
		r := newPlannedRecorder(t)
		feedNoops(newObserver(t, r, "d-0"), r.start, tt.after...)
		tt.want.Name, tt.want.Streams = "gzip", 1
		require.Equal(t, []shard.Coding{tt.want}, shardOf(r).Codings, name)
		if tt.together > 0 {
			require.Equal(t, []int64{6, tt.together}, []int64{shardOf(r).Bursts.Messages, shardOf(r).Bursts.Followers}, name)
			require.InDelta(t, 45, shardOf(r).Bursts.Silence.Max().Seconds(), .1)
		} else if bursts := shardOf(r).Bursts; bursts != nil {
			require.Zero(t, bursts.Followers, name)
		}
	}

	r := newPlannedRecorder(t)
	o := newObserver(t, r, "d-0")
	feedNoops(o, r.start, 15, 30)
	o.closed(r.start.Add(40*time.Second), sseclient.Close{Reason: sseclient.ReasonReset, Retry: 0})
	feedNoops(o, r.start.Add(100*time.Second), 40, 40, 40) // a replay after the reconnect
	excluded := newObserver(t, r, "d-1")
	excluded.excluded = true
	feedNoops(excluded, r.start, 60, 60, 60)
	require.Equal(t, []shard.Coding{{Name: "gzip", Streams: 3, Messages: 5}}, shardOf(r).Codings)
	require.Empty(t, shardOf(newPlannedRecorder(t)).Codings)
}
