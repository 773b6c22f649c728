package shard

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramsAtRestAddUpAsUnpackedOnes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	sum := newPacked(0)
	var room []int64
	want := NewHistogram()
	for range 50 {
		h := NewHistogram()
		for range r.IntN(40) {
			h.Record(time.Duration(r.ExpFloat64() * float64(time.Second)))
		}
		require.NoError(t, sum.add(h.Pack(), &room))
		require.NoError(t, sum.add(h.Pack().Fold(), &room))
		want.Merge(h)
		compact, err := h.Pack().Fold().Unpack()
		require.NoError(t, err)
		want.Merge(compact)
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

func TestPairsAreReadLikeJSONLists(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"[]", "[1]", "[0]", "[1,2,3]", "[10,200,0]", " [ 1 , 2 ] ", "[-1,1]", "null", "[1e3]", "[999999999999999999]", "[9223372036854775807]",
		"[01]", "[1,]", "[,1]", "[1,,2]", "[1.5]", "[\"1\"]", "[1", "1]", "", "[[1]]", "[9223372036854775808]", "{}", "[1]]", "[1 2]",
	} {
		var want []int64
		var got pairs
		wantErr, gotErr := json.Unmarshal([]byte(text), &want), json.Unmarshal([]byte(text), &got)
		require.Equal(t, wantErr == nil, gotErr == nil, text)
		if wantErr == nil {
			require.Equal(t, want, []int64(got), text)
		}
	}
}
