package baseline

import (
	"errors"
	"math"
	"math/big"

	"github.com/aclements/go-moremath/stats"
)

// Alpha is how often equal runs may be called different, of one figure.
const Alpha = 0.05

// Method is what a significance rests on.
type Method string

// RankSum is the test of Mann and Whitney, two-sided, exact for up to 50 runs (25 where values
// are equal). It takes nothing for granted, but needs at least four runs against four: of
// three against three the most extreme outcome has p = 2/20, which is not under Alpha.
// Prediction is the NoiseBand, for fewer.
const (
	RankSum    Method = "rank-sum"
	Prediction Method = "band"
)

// A Difference is whether two sets of runs differ by more than chance.
type Difference struct {
	Method      Method  `json:"method"`
	P           float64 `json:"p,omitempty"`    // of RankSum
	Band        *Band   `json:"band,omitempty"` // of Prediction
	Significant bool    `json:"significant"`
}

// Differ holds new values against old ones, of which it needs at least two.
func Differ(old, now []float64) (Difference, error) {
	if LeastP(len(old), len(now)) <= Alpha {
		d := Difference{Method: RankSum, P: 1}
		switch result, err := stats.MannWhitneyUTest(old, now, stats.LocationDiffers); {
		case errors.Is(err, stats.ErrSamplesEqual):
		case err != nil:
			return Difference{}, err
		default:
			d.P = math.Min(result.P, 1)
		}
		d.Significant = d.P <= Alpha
		return d, nil
	}
	band, ok := NoiseBand(old, len(now))
	if !ok {
		return Difference{}, errors.New("it takes at least two old runs and a new one to say what is noise")
	}
	return Difference{Method: Prediction, Band: &band, Significant: !band.Holds(stats.Mean(now))}, nil
}

// LeastP is the smallest two-sided p that a rank-sum test of n against m runs can come to.
func LeastP(n, m int) float64 {
	ways := new(big.Float).SetInt(new(big.Int).Binomial(int64(n+m), int64(min(n, m))))
	p, _ := new(big.Float).Quo(big.NewFloat(2), ways).Float64()
	return math.Min(p, 1)
}
