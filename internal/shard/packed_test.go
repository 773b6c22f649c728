package shard

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPackedHistogramsAddUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	sum := &Packed{}
	var buffer packedBuffer
	want := NewHistogram()
	for range 50 {
		h := NewHistogram()
		for range r.IntN(40) {
			h.Record(time.Duration(r.ExpFloat64() * float64(time.Second)))
		}
		sum.add(&buffer, h.Pack(), h.PackCoarse())
		want.Merge(h)
		coarse, err := h.PackCoarse().Unpack()
		require.NoError(t, err)
		want.Merge(coarse)
	}
	require.Equal(t, want.Pack(), sum)
}

func TestBarsAreTheBucketsInOrder(t *testing.T) {
	t.Parallel()
	require.Len(t, bars(), len(NewHistogram().h.Export().Counts))
	for i, bar := range bars() {
		require.LessOrEqual(t, bar.From, bar.To)
		if i > 0 {
			require.Equal(t, bars()[i-1].To+1, bar.From)
		}
	}
}

func TestPackCoarseKeepsCountMaximumAndQuantiles(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	require.Equal(t, h.Pack(), h.PackCoarse(), "both forms of an empty histogram must be equal")
	for n := range 3000 {
		h.Record(time.Duration(rand.ExpFloat64() * float64(20*time.Millisecond)))
		if n%100 > 0 {
			continue
		}
		coarse, err := h.PackCoarse().Unpack()
		require.NoError(t, err)
		require.Equal(t, h.Count(), coarse.Count())
		require.Equal(t, h.Max(), coarse.Max())
		for _, q := range []float64{0, .01, .5, .95, .99, 1} {
			require.InEpsilon(t, float64(h.Quantile(q)+time.Millisecond), float64(coarse.Quantile(q)+time.Millisecond), .04, "quantile %v, number of durations: %d", q, h.Count())
		}
	}
	require.Less(t, 2*len(h.PackCoarse().Counts), len(h.Pack().Counts))
}
