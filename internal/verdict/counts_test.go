package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestAVerdictNamesTheOriginsThatServed(t *testing.T) {
	t.Parallel()
	m, _ := clean()
	require.Empty(t, judgeSoak(m, nil, Evidence{}).Redirected())
	for want, redirects := range map[string][]shard.Redirect{
		", which redirected 1 stream to http://b": {{Origin: "http://b", Streams: 1}},
		", which redirected 9 streams to http://b, 3 streams to http://c, 2 streams to http://d, 4 streams to other origins": {{Origin: "http://b", Streams: 9}, {Origin: "", Streams: 3}, {Origin: "http://c", Streams: 3}, {Origin: "http://d", Streams: 2}, {Origin: "http://e", Streams: 1}},
	} {
		m.Redirects = redirects
		v := judgeSoak(m, nil, Evidence{})
		require.Equal(t, redirects, v.Redirects)
		require.Equal(t, want, v.Redirected())
	}
}

func TestStreamsOverHTTP2InWords(t *testing.T) {
	t.Parallel()
	for want, shared := range map[string]*shard.Shared{
		"":                             nil,
		"20 streams over 1 connection": {Streams: 20, Connections: 1, Most: 1},
		"400 streams over 4 connections, at most 2 of one runner": {Streams: 400, Connections: 4, Most: 2},
	} {
		m, server := clean()
		m.Shared = shared
		require.Equal(t, want, judgeSoak(m, server, Evidence{}).HTTP2())
	}
}
