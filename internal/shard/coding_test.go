package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestCodingsAddUp(t *testing.T) {
	t.Parallel()
	one, two := newControlShard(1, nil), newControlShard(2, nil)
	one.Codings = []Coding{{"zstd", 1, 2, 0, 0}, {"gzip", 3, 40, 2, 10}}
	two.Codings = []Coding{{"gzip", 1, 10, 1, 4}, {"br", 1, 0, 0, 0}}
	want := []Coding{{"br", 1, 0, 0, 0}, {"gzip", 4, 50, 3, 14}, {"zstd", 1, 2, 0, 0}}
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{one, two}).Codings)
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{two, one}).Codings)
	require.EqualValues(t, 40, one.Codings[1].Messages, "a merge does not modify its inputs")
	require.NoError(t, one.checkCodings())
	for _, hostile := range []Coding{{Streams: -1}, {Messages: maxNumber + 1}, {BurstMessages: 1 << 63}, {Name: string(make([]byte, 101))}} {
		one.Codings[0] = hostile
		require.ErrorContains(t, one.check(), "impossible counts of compressed streams")
	}
	two.Codings = make([]Coding, maxCodings+1)
	require.Error(t, two.checkCodings())
}
