package soak

import (
	"fmt"
	"strconv"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/executor"
)

// runnerIndex returns the number of this runner, from 1: the variable RUNNER if it is set, otherwise the position of
// its segment in the sequence. The k6-operator sets the same environment for all runners, but a different segment for
// each.
func runnerIndex(variable string, options lib.Options) (int, error) {
	if variable != "" {
		n, err := strconv.Atoi(variable)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("RUNNER must be the number of this runner, from 1, got %q", variable)
		}
		return n, nil
	}
	if options.ExecutionSegment == nil || options.ExecutionSegmentSequence == nil {
		return 1, nil
	}
	for i, s := range *options.ExecutionSegmentSequence {
		if s.Equal(options.ExecutionSegment) {
			return i + 1, nil
		}
	}
	return 1, nil
}

// plannedIterations returns the number of iterations of all runners, for scenarios with a planned number.
func plannedIterations(scenarios lib.ScenarioConfigs) (sum int64) {
	for _, s := range scenarios {
		switch c := s.(type) {
		case executor.SharedIterationsConfig:
			sum += c.Iterations.Int64
		case executor.PerVUIterationsConfig:
			sum += c.VUs.Int64 * c.Iterations.Int64
		}
	}
	return sum
}
