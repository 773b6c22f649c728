package resources

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func line(n int, slope, noise float64, seed uint64) (x, y []float64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		x = append(x, float64(i))
		y = append(y, 100+slope*float64(i)+noise*random.NormFloat64())
	}
	return x, y
}

func TestSlopeOfALine(t *testing.T) {
	t.Parallel()
	x, y := line(50, .5, 0, 0)
	s, ok := SlopeOf(x, y)
	require.True(t, ok)
	require.InDeltaSlice(t, []float64{.5, .5, .5}, []float64{s.PerUnit, s.Low, s.High}, 1e-9)
	y[7], y[20] = 1e6, -1e6
	s, _ = SlopeOf(x, y)
	require.InDelta(t, .5, s.PerUnit, 1e-9, "two outliers among 50 points must not change the slope")
	_, ok = SlopeOf(x[:MinPoints-1], y[:MinPoints-1])
	require.False(t, ok)
}

// The interval must contain the true slope with the documented probability.
func TestIntervalContainsTheSlopeIn95PercentOfRuns(t *testing.T) {
	t.Parallel()
	const runs = 1000
	for _, slope := range []float64{0, .02} {
		count := 0
		for seed := range uint64(runs) {
			x, y := line(30, slope, 1, seed)
			if s, _ := SlopeOf(x, y); s.Low <= slope && slope <= s.High {
				count++
			}
		}
		require.InDelta(t, .95, float64(count)/runs, .02)
	}
}

func TestMeans(t *testing.T) {
	t.Parallel()
	x, y := Means([]float64{0, 1, 2, 3, 4}, []float64{1, 3, math.NaN(), math.NaN(), 8}, 3)
	require.Equal(t, []float64{.5, 4}, x)
	require.Equal(t, []float64{2, 8}, y)
	x, _ = Means([]float64{0, 1}, []float64{1, 3}, 100)
	require.Equal(t, []float64{0, 1}, x)
}

func TestMedian(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, Median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, Median([]float64{4, 1, 2, 3}), 0)
	require.True(t, math.IsNaN(Median(nil)))
}
