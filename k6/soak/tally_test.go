package soak

import (
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

// A report shows the faults of a bucket by time, so a bucket must count missing and reordered messages, and no copy
// that the service may send.
func TestFaultsOfBuckets(t *testing.T) {
	t.Parallel()
	const (
		numbered = `message: { seq: "json:$.n" }, resume: { by: "header" }`
		repeats  = `message: { seq: "json:$.n", delivery: "at-least-once" }`
		anyOrder = `message: { seq: "json:$.n", order: "any" }`
		history  = `message: { same: "data" }, resume: { by: "none" }`
	)
	for _, c := range []struct {
		name, message, streams string // of a client, separated by "|"
		want                   int
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
			r.endBucket(at, shard.Process{}, nil)
			require.Equal(t, c.want, shardOf(r).Series[0].Faults, "%+v", shardOf(r).Connections[0])
		})
	}
}

func TestFaultsOfBucketsByInterval(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"1", "2", "5", "6"}, {"", "", "", ""}} {
		r := newPlannedRecorder(t)
		o := newObserver(t, r, "d-0")
		o.connect(r.start)
		for i, slot := range []time.Duration{1, 2, 5, 6} { // two noops are lost
			o.event(r.start.Add(slot*15*time.Second), event(ids[i], "0", ""))
		}
		r.endBucket(r.start.Add(91*time.Second), shard.Process{}, nil)
		require.Equal(t, 2, shardOf(r).Series[0].Faults, ids)
	}
}
