package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestSharedConnectionsAddUp(t *testing.T) {
	t.Parallel()
	one, two, none := newControlShard(1, nil), newControlShard(2, nil), newControlShard(3, nil)
	one.HTTP2, two.HTTP2 = &HTTP2{Streams: 300, Connections: 3}, &HTTP2{Streams: 100, Connections: 1}
	want := &HTTP2{Streams: 400, Connections: 4, MaxPerRunner: 3}
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{one, two, none}).HTTP2)
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{none, two, one}).HTTP2)
	require.Nil(t, Merge(plan.Plan{}, []*Shard{none}).HTTP2)
	require.NoError(t, one.checkHTTP2())
	for _, hostile := range []HTTP2{{Streams: -1}, {Connections: 1}, {Streams: maxNumber + 1}, {Streams: 2, Connections: 1, MaxPerRunner: 5}} {
		one.HTTP2 = &hostile
		require.ErrorContains(t, one.check(), "impossible counts of HTTP/2 streams")
	}
}
