package soak

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
)

// The operator starts all runners with the same environment, so only the segment distinguishes them.
func TestRunnerIndexFromSegment(t *testing.T) {
	t.Parallel()
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0,1/3,2/3,1")
	require.NoError(t, err)
	for text, want := range map[string]int{"0:1/3": 1, "1/3:2/3": 2, "2/3:1": 3, "0.5:1": 1} {
		segment, err := lib.NewExecutionSegmentFromString(text)
		require.NoError(t, err)
		got, err := runnerIndex("", lib.Options{ExecutionSegment: segment, ExecutionSegmentSequence: &sequence})
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	got, err := runnerIndex("7", lib.Options{})
	require.NoError(t, err)
	assert.Equal(t, 7, got, "an explicit runner number has precedence")
	got, err = runnerIndex("", lib.Options{})
	require.NoError(t, err)
	assert.Equal(t, 1, got)
}
