// Package baseline says what is normal for a plan: the median and the spread of several runs
// of it, the band in which one more run should fall, and whether two sets of runs differ by
// more than chance. A single run says nothing of that.
package baseline

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// A Summary is one figure over several runs.
type Summary struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Summarize sums values up; of none it is the zero value.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	low, high := stats.Bounds(values)
	return Summary{N: len(values), Median: median(values), Min: low, Max: high}
}

// Spread is how far the runs are apart, as a share of their median; 0 where that is 0.
func (s Summary) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / math.Abs(s.Median)
}

// median is the middle value, or the mean of the two in the middle.
func median(values []float64) float64 {
	return stats.Sample{Xs: values}.Quantile(.5)
}
