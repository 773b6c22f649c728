package ledger

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stories plays n random stories and passes each to check; a failure names its seed.
func stories(t *testing.T, n int, mix func(r *rand.Rand) options, check func(t *testing.T, s *scenario, r Record) (fault string)) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for i := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, i))
		s := newScenario(r, mix(r))
		rec := s.play()
		fault := invariantViolation(rec)
		if fault == "" {
			fault = check(t, s, rec)
		}
		if fault != "" {
			require.Failf(t, fault, "rand.NewPCG(%d, %d)\n%s\n%+v", seed, i, s, rec)
		}
	}
}

// invariantViolation returns the first invariant that a record violates.
func invariantViolation(r Record) string {
	const absurd = 1 << 62 // a sum that went below zero
	listed := map[Kind]uint64{}
	for _, f := range r.Findings {
		listed[f.Kind]++
	}
	switch {
	case r.Expected() != r.Received+r.Missed()+r.Corrupted:
		return "expected is not received + missed + corrupted"
	case r.Lost > absurd || r.Unsent > absurd || r.Tail > absurd || r.Received > absurd || r.Late > absurd:
		return "a count went below zero"
	case len(r.Findings) > maxFindings || len(r.Outages) > maxOutages:
		return "more findings than the bound"
	case r.MaxGap < 0 || r.MaxLateness < 0 || r.StreamTime < 0:
		return "a negative time"
	case r.Faultless() != (r.State == Completed && r.Received > 0 && r.Lost+r.Unsent+r.Tail+r.Duplicated+r.Reordered+r.Corrupted == 0):
		return "Faultless contradicts the counts"
	case r.Unlisted == 0 && (r.Duplicated != listed[KindDuplicated] || r.Reordered != listed[KindReordered] || r.Corrupted != listed[KindCorrupted] || r.Late != listed[KindLate]):
		return "a fault without its finding"
	case r.Missed() > 0 && r.Unlisted == 0 && listed[KindLost]+listed[KindUnsent]+listed[KindTail] == 0:
		return "a loss without a finding"
	}
	return ""
}

// storyCount is how many stories each property is tried on: STREAMS=1000000 go test ./ledger
var storyCount = func() int {
	if n, err := strconv.Atoi(os.Getenv("STREAMS")); err == nil {
		return n
	}
	return 5000
}()

// For any input, the count by number equals the count by sets, and a stream with a loss is not
// faultless.
func TestNumbersAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	stories(t, storyCount, func(r *rand.Rand) options {
		return options{numbered: true, faults: .3 * r.Float64(), jitter: .3 * r.Float64(), drift: .005, headLo: .1, headHigh: 1.1}
	}, func(_ *testing.T, s *scenario, r Record) string {
		m := countNumbers(s.events)
		got := tally{r.Received, r.Corrupted, r.Duplicated, r.Reordered, r.Lost}
		switch {
		case !r.Numbered:
			return "" // numbers that started too high are counted by interval
		case got != m:
			return "the numbers are not those of the model"
		}
		return ""
	})
}

// With numbers and little noise everything is known exactly.
func TestNumberedStreamsAreExact(t *testing.T) {
	t.Parallel()
	stories(t, storyCount, func(r *rand.Rand) options {
		return options{numbered: true, faults: .2 * r.Float64(), jitter: .2 * r.Float64(), drift: .005, headLo: .3, headHigh: 1.1, spaced: true}
	}, func(_ *testing.T, s *scenario, r Record) string {
		if !r.Numbered || !s.determined {
			return ""
		}
		switch {
		case r.Missed() != uint64(s.lost):
			return "missed is not what was lost"
		case r.Duplicated != uint64(s.duplicates), r.Corrupted != uint64(s.corrupted), r.Reordered != uint64(s.swaps):
			return "another fault was counted than was made"
		}
		return ""
	})
}

// Without numbers, separate faults are also counted exactly.
func TestUnnumberedStreamsAreExactIfFaultsAreApart(t *testing.T) {
	t.Parallel()
	stories(t, storyCount, func(r *rand.Rand) options {
		return options{faults: .2 * r.Float64(), jitter: .05 * r.Float64(), drift: .005, headLo: .3, headHigh: 1.05, spaced: true}
	}, func(_ *testing.T, s *scenario, r Record) string {
		if !s.determined {
			return ""
		}
		switch {
		case r.Missed() != uint64(s.lost):
			return "missed is not what was lost"
		case r.Duplicated != uint64(s.duplicates), r.Corrupted != uint64(s.corrupted):
			return "another fault was counted than was made"
		}
		return ""
	})
}

// The worst bug of this tool is a loss that passes. Without numbers, a noop that arrives twice can replace a
// noop that was lost right before it, or look like a part of a burst. Both look like lateness and are counted
// as late. Nothing else may hide a fault.
func TestNoLossPasses(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{true, false} {
		stories(t, storyCount, func(r *rand.Rand) options {
			return options{numbered: numbered, faults: .4 * r.Float64(), jitter: .05 * r.Float64(), drift: .005, headLo: .65, headHigh: 1.05}
		}, func(_ *testing.T, s *scenario, r Record) string {
			faults := s.lost + s.duplicates + s.corrupted + s.swaps
			switch {
			case !r.Faultless() || faults == 0:
				return ""
			case !numbered && s.corrupted == 0 && r.Late > 0 && s.duplicates >= s.lost && s.lost+s.delays > 0:
				return ""
			}
			return "A FALSE PASS"
		})
	}
}

// The second worst bug is a clean stream that fails.
func TestCleanStreamsPass(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{true, false} {
		stories(t, storyCount, func(r *rand.Rand) options {
			return options{numbered: numbered, jitter: .2 * r.Float64(), drift: .005, headLo: .1, headHigh: 1.1}
		}, func(_ *testing.T, _ *scenario, r Record) string {
			if !r.Faultless() {
				return "a false alarm"
			}
			return ""
		})
	}
}

// For each steady connection, Steady returns the same counts as Sums, after each noop of any story.
func TestSteadyEqualsSums(t *testing.T) {
	t.Parallel()
	var steady, others atomic.Int64
	for _, numbered := range []bool{true, false} {
		stories(t, storyCount/5, func(r *rand.Rand) options {
			return options{numbered: numbered, faults: .1 * r.Float64(), jitter: .2 * r.Float64(), drift: .005, headLo: .1, headHigh: 1.1}
		}, func(_ *testing.T, s *scenario, _ Record) (fault string) {
			s.playTo(func(l *Ledger) {
				total, ok := l.Steady()
				if !ok {
					others.Add(1)
					return
				}
				steady.Add(1)
				sums := l.Sums()
				if sums.Counts != (Counts{Received: total.Received, Undetectable: total.Undetectable}) || sums.LastAt != total.LastAt ||
					sums.State != Open || sums.Streams != 1 || sums.Survived != 0 || sums.Reason != "" {
					fault = "Steady omits counts of Sums"
				}
			})
			return fault
		})
	}
	require.Positive(t, steady.Load())
	require.Positive(t, others.Load())
}
