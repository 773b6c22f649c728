package soak

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

func TestStreamsOverHTTP2AreCounted(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	require.Nil(t, shardOf(r).HTTP2)
	for n, first := range []bool{true, false, false, true} {
		newObserver(t, r, string(rune('a'+n))).openStream(r.start, func(response *sseclient.Response) { response.HTTP2, response.FirstOnConnection = true, first })
	}
	require.Equal(t, &shard.HTTP2{Streams: 4, Connections: 2}, shardOf(r).HTTP2)
}

// Reports show the faults of each bucket. A bucket must count missing and reordered messages, but no copies that the
// service may send.
func TestBucketsCountFaults(t *testing.T) {
	t.Parallel()
	const (
		numbered = `message: { seq: "json:$.n" }, resume: { by: "header" }`
		repeats  = `message: { seq: "json:$.n", delivery: "at-least-once" }`
		anyOrder = `message: { seq: "json:$.n", order: "any" }`
		history  = `message: { same: "data" }, resume: { by: "none" }`
	)
	for _, c := range []struct {
		name, message string
		streams       string // of one client, separated by "|"
		want          int
	}{
		{"in order", numbered, `{"n":1} {"n":2} {"n":3}`, 0},
		{"two missing", numbered, `{"n":1} {"n":4} {"n":5}`, 2},
		{"two missing after an outage", numbered, `{"n":1} | {"n":4} {"n":5}`, 2},
		{"reordered", numbered, `{"n":1} {"n":3} {"n":2} {"n":4}`, 1},
		{"reordered, as allowed", anyOrder, `{"n":1} {"n":3} {"n":2} {"n":4}`, 0},
		{"duplicated", numbered, `{"n":1} {"n":2} {"n":2}`, 1},
		{"repeated, as allowed", repeats, `{"n":1} {"n":2} {"n":2}`, 0},
		{"corrupted", numbered, `{"n":1} {"n":"x"} {"n":3}`, 1},
		{"a history after a reconnect", history, `"a" "b" "c" | "a" "b" "c" "d"`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rt, r := newServiceVU(t, `service({ name: "any", connect: { url: "{base}" }, `+c.message+` })`)
			o := newStream(t, rt, "d-1")
			at := r.start
			for stream := range strings.SplitSeq(c.streams, "|") {
				o.connect(at)
				for _, data := range strings.Fields(stream) {
					at = at.Add(2 * time.Second)
					feed(t, o, at, "id: 1\ndata: "+data+"\n\n")
				}
				o.closed(at, sseclient.Close{Reason: sseclient.ReasonServer, Retry: time.Second})
			}
			r.endBucket(at, shard.ProcessUsage{}, nil)
			require.Equal(t, c.want, shardOf(r).Series[0].Faults, "%+v", shardOf(r).Connections[0])
		})
	}
}

func TestBucketsCountFaultsByInterval(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"1", "2", "5", "6"}, {"", "", "", ""}} {
		r := newPlannedRecorder(t)
		o := newObserver(t, r, "d-0")
		o.connect(r.start)
		for i, slot := range []time.Duration{1, 2, 5, 6} { // two noops are lost
			o.event(r.start.Add(slot*15*time.Second), event(ids[i], "0", ""))
		}
		r.endBucket(r.start.Add(91*time.Second), shard.ProcessUsage{}, nil)
		require.Equal(t, 2, shardOf(r).Series[0].Faults, ids)
	}
}

// feedNoops opens a gzip stream whose noops arrive the given number of seconds after its headers.
func feedNoops(o *observer, opened time.Time, after ...float64) {
	o.connecting(opened)
	o.openStream(opened, func(r *sseclient.Response) { r.Header.Set("Content-Encoding", "gzip") })
	for n, s := range after {
		o.event(opened.Add(time.Duration(s*float64(time.Second))), event(strconv.Itoa(n+1), "0", ""))
	}
}

// Messages that were due separately but arrive together are distinguished from other messages, and from a replay.
func TestCompressedBurstsAreCounted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after    []float64
		want     shard.Coding
		together int64 // messages within a millisecond of the previous one, except in the first burst
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

	r = newPlannedRecorder(t)
	o = newObserver(t, r, "d-0")
	o.connect(r.start) // without compression
	o.closed(r.start.Add(time.Second), sseclient.Close{Reason: sseclient.ReasonReset, Retry: 0})
	feedNoops(o, r.start.Add(2*time.Second), 40, 40, 40) // a replay
	require.Equal(t, []shard.Coding{{Name: "gzip", Streams: 1, Messages: 3}}, shardOf(r).Codings)
}
