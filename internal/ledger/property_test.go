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

// checkScenarios plays n random scenarios and calls check for each. The failure message contains the seed.
func checkScenarios(t *testing.T, n int, mix func(r *rand.Rand) options, check func(t *testing.T, s *scenario, r Record) (fault string)) {
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

// invariantViolation describes how a record violates an invariant, or returns "" if it violates none.
func invariantViolation(r Record) string {
	const absurd = 1 << 62 // a higher count was decremented below zero
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
		return "more findings or outages than the limit"
	case r.MaxGap < 0 || r.MaxLateness < 0 || r.StreamTime < 0:
		return "a negative time"
	case r.ReceivedWithoutFault() != (r.State == Completed && r.Received > 0 && r.Lost+r.Unsent+r.Tail+r.Duplicated+r.Reordered+r.Corrupted == 0):
		return "ReceivedWithoutFault contradicts the counts"
	case r.Unlisted == 0 && (r.Duplicated != listed[KindDuplicated] || r.Reordered != listed[KindReordered] || r.Corrupted != listed[KindCorrupted] || r.Late != listed[KindLate]):
		return "a fault without its finding"
	case r.Missed() > 0 && r.Unlisted == 0 && listed[KindLost]+listed[KindUnsent]+listed[KindTail] == 0:
		return "a loss without a finding"
	}
	return ""
}

// scenarioCount is the number of scenarios for each property. To change it: STREAMS=1000000 go test ./internal/ledger
var scenarioCount = func() int {
	if n, err := strconv.Atoi(os.Getenv("STREAMS")); err == nil {
		return n
	}
	return 5000
}()

// For any input, the count by number equals the count of the model.
func TestNumbersAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	checkScenarios(t, scenarioCount, func(r *rand.Rand) options {
		return options{numbered: true, faults: .3 * r.Float64(), jitter: .3 * r.Float64(), drift: .005, headLow: .1, headHigh: 1.1}
	}, func(_ *testing.T, s *scenario, r Record) string {
		m := countNumbers(s.events)
		got := tally{r.Received, r.Corrupted, r.Duplicated, r.Reordered, r.Lost}
		switch {
		case !r.Numbered:
			return "" // numbers that started too high are counted by interval
		case got != m:
			return "the counts differ from the model"
		}
		return ""
	})
}

// If faults are far apart, all counts are exact: by number with little jitter, by interval with less.
func TestSeparateFaultsAreCountedExactly(t *testing.T) {
	t.Parallel()
	for _, o := range []options{
		{numbered: true, jitter: .2, drift: .005, headLow: .3, headHigh: 1.1, spaced: true},
		{numbered: false, jitter: .05, drift: .005, headLow: .3, headHigh: 1.05, spaced: true},
	} {
		checkScenarios(t, scenarioCount, func(r *rand.Rand) options {
			random := o
			random.faults, random.jitter = .2*r.Float64(), o.jitter*r.Float64()
			return random
		}, func(_ *testing.T, s *scenario, r Record) string {
			switch {
			case r.Numbered != o.numbered, !s.determined:
				return ""
			case r.Missed() != uint64(s.lost):
				return "the number of missed noops differs from the number of lost ones"
			case r.Duplicated != uint64(s.duplicates), r.Corrupted != uint64(s.corrupted), r.Reordered != uint64(s.swaps):
				return "the counts of faults differ from the scenario"
			}
			return ""
		})
	}
}

// A loss that passes is the worst bug of this tool. Without numbers, a noop that arrives twice can replace a noop that
// was lost directly before it, or look like a part of a burst. In both cases, a noop counts as late. All other faults
// must be detected.
func TestNoLossPasses(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{true, false} {
		checkScenarios(t, scenarioCount, func(r *rand.Rand) options {
			return options{numbered: numbered, faults: .4 * r.Float64(), jitter: .05 * r.Float64(), drift: .005, headLow: .65, headHigh: 1.05}
		}, func(_ *testing.T, s *scenario, r Record) string {
			faults := s.lost + s.duplicates + s.corrupted + s.swaps
			switch {
			case !r.ReceivedWithoutFault() || faults == 0:
				return ""
			case !numbered && s.corrupted == 0 && r.Late > 0 && s.duplicates >= s.lost && s.lost+s.delays > 0:
				return ""
			}
			return "a false pass"
		})
	}
}

// A clean stream that fails is the second worst bug.
func TestCleanStreamsPass(t *testing.T) {
	t.Parallel()
	for _, numbered := range []bool{true, false} {
		checkScenarios(t, scenarioCount, func(r *rand.Rand) options {
			return options{numbered: numbered, jitter: .2 * r.Float64(), drift: .005, headLow: .1, headHigh: 1.1}
		}, func(_ *testing.T, _ *scenario, r Record) string {
			if !r.ReceivedWithoutFault() {
				return "a false alarm"
			}
			return ""
		})
	}
}

// For each steady client, Steady returns the same counts as Sums, after each noop of any scenario.
func TestSteadyEqualsSums(t *testing.T) {
	t.Parallel()
	var steady, others atomic.Int64
	for _, numbered := range []bool{true, false} {
		checkScenarios(t, scenarioCount/5, func(r *rand.Rand) options {
			return options{numbered: numbered, faults: .1 * r.Float64(), jitter: .2 * r.Float64(), drift: .005, headLow: .1, headHigh: 1.1}
		}, func(_ *testing.T, s *scenario, _ Record) (fault string) {
			s.playAndInspect(func(l *Ledger) {
				total, ok := l.Steady()
				if !ok {
					others.Add(1)
					return
				}
				steady.Add(1)
				sums := l.Sums()
				if sums.Counts != (Counts{Received: total.Received, Undetectable: total.Undetectable}) || sums.LastAt != total.LastAt ||
					sums.State != Open || sums.Streams != 1 || sums.Survived != 0 || sums.Reason != "" {
					fault = "Steady and Sums differ"
				}
			})
			return fault
		})
	}
	require.Positive(t, steady.Load())
	require.Positive(t, others.Load())
}
