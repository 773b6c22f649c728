package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The ledger measures the interval of the service, independent of the planned one.
func TestIntervalMeasurement(t *testing.T) {
	t.Parallel()
	for _, actual := range []float64{.3, .5, .75, .8, .99, 1, 1.01, 1.2, 1.5, 2.5} {
		for _, numbered := range []bool{false, true} {
			for _, loses := range []bool{false, true} {
				var noops []Noop
				for n := range 40 {
					if loses && n%9 == 5 {
						continue
					}
					jitter := .02 * float64(n*7%10) // of an interval
					noops = append(noops, noopAt(15*sec, actual*(float64(n+1)+jitter), numberIf(numbered, uint64(n+1))))
				}
				r := playAt(15*sec, actual*41, noops...)
				require.InDelta(t, actual*15, r.Interval.Seconds(), .01*actual*15, "numbered %v, loses %v: %+v", numbered, loses, r)
				if differs := actual < .98 || actual > 1.02; differs {
					require.Greater(t, (r.Interval - 15*sec).Abs(), r.IntervalError+15*sec/100, "numbered %v, loses %v: %+v", numbered, loses, r)
				} else {
					require.LessOrEqual(t, (r.Interval - 15*sec).Abs(), r.IntervalError+15*sec/100)
				}
			}
		}
	}
}

// A delay of any length at any time does not change the measured interval.
func TestDelayDoesNotChangeTheInterval(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{false, true} {
		for _, count := range []int{5, 6, 7, 8, 15} {
			for from := range count - 1 {
				for _, delay := range []float64{.3, .49, .51, .8, 1, 1.49, 1.5, 2.2, 3.7} {
					var noops []Noop
					until := .6 + float64(from) + delay
					for n := range count {
						at := .6 + float64(n)
						if n >= from {
							at = max(at, until)
						}
						noops = append(noops, noopAt(15*sec, at, numberIf(numbered, uint64(n+1))))
					}
					r := playAt(15*sec, float64(count+4), noops...)
					if r.Interval > 0 {
						require.LessOrEqual(t, (r.Interval - 15*sec).Abs(), r.IntervalError+15*sec/100, "delay of %v intervals from noop %d of %d on, numbered %v: %+v", delay, from, count, numbered, r)
					}
				}
			}
		}
	}
}

// A service whose interval is a multiple of the planned one cannot be distinguished from a service that loses noops.
// Only numbers show the interval.
func TestDoubleIntervalCountsAsLossesWithoutNumbers(t *testing.T) {
	t.Parallel()
	for _, actual := range []int{2, 4} {
		for _, numbered := range []bool{false, true} {
			var noops []Noop
			for n := range 20 {
				noops = append(noops, noopAt(15*sec, float64(actual*(n+1)), numberIf(numbered, uint64(n+1))))
			}
			r := playAt(15*sec, float64(actual*20)+.4, noops...)
			require.Positive(t, r.Missed(), "the slots in between must count as missed, numbered %v: %+v", numbered, r)
			if numbered {
				require.Equal(t, time.Duration(actual)*15*sec, r.Interval)
			} else {
				require.Equal(t, 15*sec, r.Interval)
			}
		}
	}
}

// A gap is uneven if noops are further from their schedule than assumed. This is the case if they jitter by 30% of an
// interval in both directions, but not if they are late by up to 30% or lost.
func TestUnevenGapsExceedTheAssumedJitter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		jitter      float64 // of an interval
		lossless    bool
		least, most float64 // share of the gaps
	}{
		{"30% in both directions", .6, true, .15, .35},
		{"30% late", .3, true, 0, 0},
		{"30% late, and every fourth is lost", .3, false, 0, 0},
	} {
		for _, numbered := range []bool{true, false} {
			r := rand.New(rand.NewPCG(1, 2))
			l := openLedger(&Config{Interval: interval, LatenessLimit: sec})
			for n := 1; n <= 400; n++ {
				at := time.Duration((float64(n) + c.jitter*r.Float64()) * float64(interval))
				if c.lossless || n%4 > 0 {
					l.Noop(Noop{At: at, Number: numberIf(numbered, uint64(n)), Intact: true})
				}
			}
			got := float64(l.Record().UnevenGaps) / 400
			require.True(t, c.least <= got && got <= c.most, "%s, numbered %v: the share of uneven gaps is %g, want %g to %g", c.name, numbered, got, c.least, c.most)
		}
	}
}
