package compare

import (
	"errors"
	"math"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
)

// alpha is the maximum probability that equal runs are reported as different, per metric.
const alpha = 0.05

// A Summary is one metric over several runs.
type Summary struct{ Median, Min, Max float64 }

// Summarize returns the summary of one metric, given its values in at least one run.
func Summarize(values []float64) Summary {
	low, high := stats.Bounds(values)
	return Summary{Median: stats.Sample{Xs: values}.Quantile(.5), Min: low, Max: high}
}

// Spread returns the range of the values as a share of their median, or 0 if the median is 0.
func (s Summary) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / math.Abs(s.Median)
}

// A Difference states whether two sets of runs differ by more than chance explains. The evidence is the p-value of a
// test, or a band if there are too few runs for a test.
type Difference struct {
	P           float64 // p-value; 0 with a Band, and for a first fault, which needs no test
	Band        *Band   // nil with a p-value, and for a first fault
	Significant bool
}

// differ compares new values with at least two old ones. It uses the two-sided test of Mann and Whitney, which assumes
// no distribution. The test is exact for up to 50 runs in each set (25 with equal values). differ uses noiseBand if
// there are too few runs for a p of at most alpha. Four against four runs are enough. With three against three, the
// most extreme outcome has p = 2/20.
func differ(old, recent []float64) (Difference, error) {
	if MinP(len(old), len(recent)) > alpha {
		band, ok := noiseBand(old, len(recent))
		if !ok {
			return Difference{}, errors.New("estimate the noise: at least two old runs and one new run are required")
		}
		return Difference{Band: &band, Significant: !band.Contains(stats.Mean(recent))}, nil
	}
	result, err := stats.MannWhitneyUTest(old, recent, stats.LocationDiffers)
	if errors.Is(err, stats.ErrSamplesEqual) {
		return Difference{P: 1}, nil
	}
	if err != nil {
		return Difference{}, err
	}
	p := min(result.P, 1)
	return Difference{P: p, Significant: p <= alpha}, nil
}

// differByFactor compares the logarithms of values above 0 with differ. Times vary by factors: a band over their
// logarithms covers their long tail, and is never below 0.
func differByFactor(old, recent []float64) (Difference, error) {
	logs := func(values []float64) []float64 {
		out := make([]float64, len(values))
		for i, v := range values {
			out[i] = math.Log(v)
		}
		return out
	}
	d, err := differ(logs(old), logs(recent))
	if d.Band != nil {
		d.Band = &Band{Low: math.Exp(d.Band.Low), High: math.Exp(d.Band.High)}
	}
	return d, err
}

// MinP returns the smallest possible two-sided p of a rank-sum test of n against m runs.
func MinP(n, m int) float64 { return min(2/mathx.Choose(n+m, n), 1) }

// A Band is the range that contains the mean of further runs of the same plan with probability 1 − alpha. It is a
// Student's t prediction interval, which assumes a normal distribution. A band computed from few runs is wide.
type Band struct{ Low, High float64 }

// noiseBand returns the band for the mean of further runs. ok is false for fewer than two values, or no further run.
func noiseBand(values []float64, further int) (b Band, ok bool) {
	if len(values) < 2 || further < 1 {
		return Band{}, false
	}
	n := float64(len(values))
	mean := stats.Mean(values)
	t := stats.InvCDF(stats.TDist{V: n - 1})(1 - alpha/2)
	halfWidth := t * stats.StdDev(values) * math.Sqrt(1/n+1/float64(further))
	return Band{Low: mean - halfWidth, High: mean + halfWidth}, true
}

// Contains reports whether v is in the band.
func (b Band) Contains(v float64) bool { return b.Low <= v && v <= b.High }
