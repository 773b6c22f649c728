package report

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var nan = math.NaN()

func TestSeriesBreakAtUnknownValues(t *testing.T) {
	t.Parallel()
	s := splitAtGaps("x", "", []float64{nan, 1, nan, 2, nan, nan, nan, 3, 4}, 2)
	require.Equal(t, Numbers{1, 3, 4, 7, 8}, s.At)
	require.Equal(t, []float64{1, 2}, []float64(s.Values[:2]))
	require.True(t, math.IsNaN(s.Values[2]), "points that are four steps apart must not be joined")
	require.Equal(t, []float64{3, 4}, []float64(s.Values[3:]))
	require.Empty(t, splitAtGaps("x", "", nil, 2).At)
	require.Empty(t, splitAtGaps("x", "", []float64{nan, nan}, 2).At)
}

func TestThinningKeepsEndsAndPeaks(t *testing.T) {
	t.Parallel()
	values := make([]float64, 50_000)
	for i := range values {
		values[i] = math.Sin(float64(i) / 500)
	}
	values[31_234] = 50
	s := splitAtGaps("x", "", values, 3)
	require.LessOrEqual(t, len(s.At), maxPoints)
	require.InDelta(t, 0, s.At[0], 0)
	require.InDelta(t, 49_999, s.At[len(s.At)-1], 0)
	require.Contains(t, s.Values, 50.0)
	for i := 1; i < len(s.At); i++ {
		require.Greater(t, s.At[i], s.At[i-1])
	}
}

func TestSeriesWithManyGapsAreThinned(t *testing.T) {
	t.Parallel()
	values := make([]float64, 40_000)
	for i := range values {
		if values[i] = 1; i%20 > 10 {
			values[i] = nan
		}
	}
	require.LessOrEqual(t, len(splitAtGaps("x", "", values, 3).At), 4*maxPoints+2000)
}

func TestBarWidthsAreWholeIntervals(t *testing.T) {
	t.Parallel()
	for interval, want := range map[float64]int{15: 3, 5: 1, 1: 1, .5: 1, 10: 2, 7: 7, 2: 2, 2.5: 1, 4: 4, 30: 6, 60: 12, 90: 18, 13: 3} {
		require.Equal(t, want, (&series{step: step}).minBarWidth(interval), "%v", interval)
	}
	for interval, want := range map[float64]int{15: 15, 1: 1, .5: 1, 2.5: 5, .4: 2} {
		require.Equal(t, want, (&series{step: 1}).minBarWidth(interval), "%v in a short run", interval)
	}
}

func TestExtrapolationsAreRounded(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"≈ 400,000", "≈ 21,000", "≈ 7"}, []string{roundTwoDigits(397_432), roundTwoDigits(20_501), roundTwoDigits(7.2)})
}

func TestNumbersAreJSON(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Numbers{0, 1200, -3, .1, 1234.56789, 1e12, math.NaN(), math.Inf(1)})
	require.NoError(t, err)
	require.Equal(t, "[0,1200,-3,0.1,1234.6,1e+12,null,null]", string(b))
}
