package shard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompactIsReversible(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	require.Equal(t, h.Pack(), Expand(h.Pack().Compact()), "empty")
	for range 1000 {
		h.Record(time.Duration(rand.Int64N(int64(3 * time.Hour))))
	}
	packed := h.Pack()
	require.Equal(t, packed, Expand(packed.Compact()))
	require.Less(t, len(packed.Compact()), 3*len(packed.Counts)/2+8, "at most three bytes for each bucket")
}
