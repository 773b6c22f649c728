package soak

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

func TestStreamsOverHTTP2AreCounted(t *testing.T) {
	t.Parallel()
	r := newPlannedRecorder(t)
	require.Nil(t, shardOf(r).HTTP2)
	for n, first := range []bool{true, false, false, true} {
		openStreams(newObserver(t, r, string(rune('a'+n))), r.start, func(response *sseclient.Response) { response.HTTP2, response.FirstOnConnection = true, first })
	}
	require.Equal(t, &shard.HTTP2{Streams: 4, Connections: 2}, shardOf(r).HTTP2)
}
