package shard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompactKeepsCountMaximumAndQuantiles(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	require.Equal(t, h.Pack(), Expand(h.Pack().Compact()), "empty")
	for n := range 3000 {
		h.Record(time.Duration(rand.ExpFloat64() * float64(20*time.Millisecond)))
		if n%100 > 0 {
			continue
		}
		kept, err := Expand(h.Pack().Compact()).Unpack()
		require.NoError(t, err)
		require.Equal(t, h.Count(), kept.Count())
		require.Equal(t, h.Max(), kept.Max())
		for _, q := range []float64{0, .01, .5, .95, .99, 1} {
			require.InEpsilon(t, float64(h.Quantile(q)+time.Millisecond), float64(kept.Quantile(q)+time.Millisecond), .04, "q %v of %d", q, h.Count())
		}
	}
	packed := h.Pack()
	require.Less(t, 4*len(packed.Compact()), 8*len(packed.Counts), "at most a quarter of the words")
}
