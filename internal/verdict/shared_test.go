package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

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
