package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/suite"
)

func partOf(runner string) *session {
	s := newSession(Config{Suite: suite.Default(), Plan: plan.Default(), Runner: runner, Backends: 1, Local: plan.DefaultLocal()})
	s.Plan.TestID, s.Plan.BackendURL, s.Plan.Connections = "t", "http://h", 7
	return s
}

func TestPartHasItsShareOfThePlan(t *testing.T) {
	t.Parallel()
	s := partOf("2/3")
	require.NoError(t, s.parsePart())
	require.Equal(t, []int{2, 3}, []int{s.part, s.Plan.Runners})
	require.Equal(t, []int{1, 2}, []int{s.localPlan().Runners, s.localPlan().Connections})
	s = partOf("1/3")
	require.NoError(t, s.parsePart())
	require.Equal(t, []int{1, 3}, []int{s.localPlan().Runners, s.localPlan().Connections})
	s = partOf("")
	require.NoError(t, s.parsePart())
	require.Equal(t, s.Plan, s.localPlan(), "without --runner")
}

func TestStartAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 28, 23, 30, 15, 0, time.FixedZone("", -3600)) // 1 March, 00:30:15 UTC
	for text, want := range map[string]string{
		"00:31":                     "2026-03-01T00:31:00Z",
		"00:30:16":                  "2026-03-01T00:30:16Z",
		"00:30":                     "2026-03-02T00:30:00Z",
		"2026-03-01T02:31:00+01:00": "2026-03-01T01:31:00Z",
	} {
		at, err := parseStart(text, now)
		require.NoError(t, err)
		require.Equal(t, want, at.UTC().Format(time.RFC3339), text)
	}
	at, err := parseStart("", now)
	require.NoError(t, err)
	require.True(t, at.IsZero())
	_, err = parseStart("2026-03-01T00:30:00Z", now)
	require.ErrorContains(t, err, "which was 15s ago")
	for _, text := range []string{"now", "25:00", "10", "2026-03-01"} {
		_, err := parseStart(text, now)
		require.ErrorContains(t, err, "must be HH:MM", text)
	}
}
