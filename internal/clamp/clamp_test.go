package clamp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsAreLimitedToTheRange(t *testing.T) {
	t.Parallel()
	require.Equal(t, []uint64{0, 0, 7, math.MaxInt64}, []uint64{Uint64(math.MinInt), Uint64(-1), Uint64(int64(7)), Uint64(int64(math.MaxInt64))})
	require.Equal(t, []int{0, 7, math.MaxInt, math.MaxInt}, []int{Int(0), Int(7), Int(math.MaxInt + 1), Int(math.MaxUint64)})
	require.Equal(t, []int64{0, 7, math.MaxInt64, math.MaxInt64}, []int64{Int64(0), Int64(7), Int64(math.MaxInt64 + 1), Int64(math.MaxUint64)})
}
