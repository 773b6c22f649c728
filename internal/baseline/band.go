package baseline

import (
	"math"

	"github.com/aclements/go-moremath/stats"
)

// A Band is where the mean of further runs of the same plan should fall, with the
// probability Confidence: a prediction interval by Student's t, so it takes for granted that
// runs scatter about normally. Few runs make a wide band, which is the truth about few runs.
type Band struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Confidence of a band; what is left of it is the share of equal runs that fall out of one.
const Confidence = 1 - Alpha

// NoiseBand is the band of values for the mean of `further` runs. ok is false for less than two
// values, which have no spread.
func NoiseBand(values []float64, further int) (b Band, ok bool) {
	if len(values) < 2 || further < 1 {
		return Band{}, false
	}
	n := float64(len(values))
	mean := stats.Mean(values)
	t := stats.InvCDF(stats.TDist{V: n - 1})(1 - Alpha/2)
	reach := t * stats.StdDev(values) * math.Sqrt(1/n+1/float64(further))
	return Band{Low: mean - reach, High: mean + reach}, true
}

// Holds says whether v is in the band.
func (b Band) Holds(v float64) bool { return b.Low <= v && v <= b.High }
