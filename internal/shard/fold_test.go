package shard

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFoldKeepsCountMaximumAndQuantiles(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	require.Equal(t, h.Pack(), h.Pack().Fold().unfolded(), "empty")
	for n := range 3000 {
		h.Record(time.Duration(rand.ExpFloat64() * float64(20*time.Millisecond)))
		if n%100 > 0 {
			continue
		}
		kept, err := h.Pack().Fold().Unpack()
		require.NoError(t, err)
		require.Equal(t, h.Count(), kept.Count())
		require.Equal(t, h.Max(), kept.Max())
		for _, q := range []float64{0, .01, .5, .95, .99, 1} {
			require.InEpsilon(t, float64(h.Quantile(q)+time.Millisecond), float64(kept.Quantile(q)+time.Millisecond), .04, "q %v of %d", q, h.Count())
		}
	}
	packed := h.Pack()
	require.Less(t, 4*len(packed.Fold().folded), 8*len(packed.Counts), "at most a quarter of the words")
	written, err := json.Marshal(packed.Fold())
	require.NoError(t, err)
	want, err := json.Marshal(packed.Fold().unfolded())
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(written))
}
