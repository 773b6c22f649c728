package shard

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// maxError returns the largest error of a value: 1 %, or a microsecond, the smallest unit, if that is more.
func maxError(d time.Duration) float64 { return max(.01*float64(d), float64(time.Microsecond)) }

// random returns a duration whose logarithm is uniformly distributed.
func random(r *rand.Rand) time.Duration {
	return time.Duration(math.Exp(r.Float64() * math.Log(float64(2*time.Hour))))
}

func TestCountBy(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	edges := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}
	require.Equal(t, []int64{0, 0, 0, 0}, h.CountBy(edges))
	for _, d := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond, 11 * time.Millisecond, time.Hour} {
		h.Record(d)
	}
	require.Equal(t, []int64{2, 2, 1, 1}, h.CountBy(edges))
	require.Equal(t, []int64{6}, h.CountBy(nil))
}

func TestHistogramErrorIsBelowOnePercent(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	h := NewHistogram()
	for range 10_000 {
		d := random(r)
		h.Reset()
		h.Record(d)
		h.Record(2 * time.Hour) // otherwise Max would make the value exact
		require.InDelta(t, d, h.Quantile(.5), maxError(d))
		require.Equal(t, 2*time.Hour, h.Max())
	}
}

func TestQuantilesOfMergedHistograms(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for range 50 {
		var all []time.Duration
		together, parts := NewHistogram(), []*Histogram{NewHistogram(), NewHistogram(), NewHistogram()}
		for range 1 + r.IntN(500) {
			d := random(r)
			all = append(all, d)
			together.Record(d)
			parts[r.IntN(len(parts))].Record(d)
		}
		merged := NewHistogram()
		for _, p := range parts {
			merged.Merge(p)
		}
		require.Equal(t, together.Pack(), merged.Pack())
		text, err := json.Marshal(merged)
		require.NoError(t, err)
		var back Histogram
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, merged.Pack(), back.Pack())
		require.Equal(t, merged.Count(), back.Count())
		slices.Sort(all)
		for _, q := range []float64{.5, .95, .99, 1} {
			exact := all[int(math.Ceil(q*float64(len(all))))-1]
			require.InDelta(t, exact, merged.Quantile(q), maxError(exact), "quantile %v, number of durations: %d", q, len(all))
		}
		require.Equal(t, all[len(all)-1].Truncate(time.Microsecond), merged.Max())
	}
}

func TestQuantilesOfFewValuesUseNearestRank(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    int
		q    float64
		rank int
	}{
		{1, .01, 1}, {1, .99, 1}, {2, .5, 1}, {2, .51, 2}, {3, .5, 2}, {10, .95, 10}, {20, .95, 19}, {21, .95, 20},
		{60, .99, 60}, {60, .5, 30}, {61, .5, 31}, {99, .99, 99}, {100, .99, 99}, {101, .99, 100}, {100, .07, 7}, {100, .28, 28}, {100, .999, 100}, {60, 0, 1}, {60, 1, 60},
	} {
		h := NewHistogram()
		for i := range c.n {
			h.Record(time.Duration(i+1) * time.Microsecond) // so short that each duration has its own bucket
		}
		require.Equal(t, time.Duration(c.rank)*time.Microsecond, h.Quantile(c.q), "quantile %v, number of durations: %d", c.q, c.n)
	}
}

func TestMergeShifted(t *testing.T) {
	t.Parallel()
	source := NewHistogram()
	for _, d := range []time.Duration{0, time.Millisecond, time.Second, time.Hour} {
		source.Record(d)
	}
	for _, shift := range []time.Duration{0, 5 * time.Millisecond, -time.Millisecond, -time.Hour, 2 * time.Hour} {
		h := NewHistogram()
		h.MergeShifted(source, shift)
		require.Equal(t, source.Count(), h.Count())
		require.Equal(t, min(max(source.Max()+shift, 0), 2*time.Hour), h.Max(), "shift %v", shift)
		exact := min(max(time.Second+shift, 0), 2*time.Hour)
		require.InDelta(t, exact, h.Quantile(.75), maxError(time.Second)+maxError(exact), "shift %v", shift)
		_, err := h.Pack().Unpack()
		require.NoError(t, err, "shift %v", shift)
	}
	h := NewHistogram()
	h.MergeShifted(NewHistogram(), time.Hour)
	require.Zero(t, h.Max())
}

func TestUnpackRejectsInvalidData(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(p *Packed){
		"half a number":               func(p *Packed) { p.Counts = append(p.Counts, 1, 0x80) },
		"a bucket twice":              func(p *Packed) { p.Counts = append(p.Counts, 0, 1) },
		"an index too high":           func(p *Packed) { p.Counts = append(p.Counts, 0xff, 0x7f, 1) },
		"a count of 0":                func(p *Packed) { p.Counts = append(p.Counts, 1, 0) },
		"a count that overflows":      func(p *Packed) { p.Counts = binary.AppendUvarint(append(p.Counts, 1), math.MaxInt64) },
		"a maximum below 0":           func(p *Packed) { p.Max = -1 },
		"a maximum out of range":      func(p *Packed) { p.Max = math.MaxInt64 },
		"a maximum below its buckets": func(p *Packed) { p.Max = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := NewHistogram()
			h.Record(time.Second)
			p := h.Pack()
			edit(p)
			_, err := p.Unpack()
			require.ErrorContains(t, err, "histogram")
		})
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	h, earlier := NewHistogram(), NewHistogram()
	for _, d := range []time.Duration{time.Millisecond, 9 * time.Second} {
		h.Record(d)
	}
	earlier.Merge(h)
	require.Zero(t, h.Since(earlier).Count())
	require.Zero(t, h.Since(earlier).Max())
	for _, d := range []time.Duration{2 * time.Second, 3 * time.Second} {
		h.Record(d)
	}
	recent := h.Since(earlier)
	require.EqualValues(t, 2, recent.Count())
	require.InEpsilon(t, 3*time.Second, recent.Max(), .01)
	require.InEpsilon(t, 2*time.Second, recent.Quantile(.5), .01)
	require.EqualValues(t, 4, h.Count(), "Since must not change the histogram")
}
