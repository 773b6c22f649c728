package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestSharedConnectionsAddUp(t *testing.T) {
	t.Parallel()
	one, two, none := newControlShard(1, nil), newControlShard(2, nil), newControlShard(3, nil)
	one.Shared, two.Shared = &Shared{Streams: 300, Connections: 3}, &Shared{Streams: 100, Connections: 1}
	want := &Shared{Streams: 400, Connections: 4, MaxPerRunner: 3}
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{one, two, none}).Shared)
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{none, two, one}).Shared)
	require.Nil(t, Merge(plan.Plan{}, []*Shard{none}).Shared)
	require.NoError(t, one.checkShared())
	for _, hostile := range []Shared{{Streams: -1}, {Connections: 1}, {Streams: maxNumber + 1}, {Streams: 2, Connections: 1, MaxPerRunner: 5}} {
		one.Shared = &hostile
		require.ErrorContains(t, one.check(), "impossible counts of HTTP/2 streams")
	}
}
