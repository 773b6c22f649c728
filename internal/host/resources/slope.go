package resources

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// A Slope is the growth of y per unit of x, estimated by the method of Theil and Sen. It is the median of the slopes
// between all pairs of points, which is robust against outliers. Low and High are the bounds of Sen's interval, derived
// from the variance of Kendall's tau. If the deviations of the points are independent, the interval contains the true
// slope with 95 % probability. Successive samples are not independent; use Means first.
type Slope struct {
	PerUnit   float64
	Low, High float64
}

// MinPoints is the minimum number of points for a slope.
const MinPoints = 8

// normal975 is the 97.5 % quantile of the normal distribution.
const normal975 = 1.959964

// SlopeOf returns the slope of y over increasing x. ok is false for fewer than MinPoints points, or if the lengths
// differ.
func SlopeOf(x, y []float64) (s Slope, ok bool) {
	n := len(x)
	if n < MinPoints || len(y) != n {
		return Slope{}, false
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range n {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
		}
	}
	slices.Sort(slopes)
	pairs := float64(len(slopes))
	// width is the width of the interval in ranks, from the standard deviation of Kendall's score.
	width := normal975 * math.Sqrt(pairs*float64(2*n+5)/9)
	slopeAt := func(rank float64) float64 {
		return slopes[int(min(max(math.Round(rank), 0), pairs-1))]
	}
	return Slope{
		PerUnit: stats.Sample{Xs: slopes, Sorted: true}.Quantile(.5),
		Low:     slopeAt((pairs-width)/2 - 1), High: slopeAt((pairs + width) / 2),
	}, true
}

// Median returns the median, or NaN without values.
func Median(values []float64) float64 { return stats.Sample{Xs: values}.Quantile(.5) }

// Means replaces groups of successive points by their means, so that at most limit points remain. It omits points whose
// y is NaN.
func Means(x, y []float64, limit int) (mx, my []float64) {
	width := max((len(x)+limit-1)/limit, 1)
	for from := 0; from < len(x); from += width {
		var sumX, sumY, n float64
		for i := from; i < min(from+width, len(x)); i++ {
			if !math.IsNaN(y[i]) {
				sumX, sumY, n = sumX+x[i], sumY+y[i], n+1
			}
		}
		if n > 0 {
			mx, my = append(mx, sumX/n), append(my, sumY/n)
		}
	}
	return mx, my
}
