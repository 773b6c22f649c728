package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badImage returns a snapshot of a run whose runners cannot pull their image.
func badImage(at time.Time) Snapshot {
	s := snapshot("creating")
	s.At = at
	for i := range s.Runners {
		s.Runners[i] = part(runName+"-1", "", setNoImage)
	}
	return s
}

// A permanent cause is reported within 30 s, not after the ten minutes of the phase.
func TestPersistentCauseEndsTheRun(t *testing.T) {
	t.Parallel()
	limits := testLimits()
	limits.Start = 10 * time.Minute
	m := newTracker(3, limits, noon)
	for _, after := range []time.Duration{0, 10 * time.Second, 24 * time.Second} {
		m.Advance(badImage(noon.Add(after)))
		require.False(t, m.IsDone(), after)
	}
	m.Advance(badImage(noon.Add(26 * time.Second)))
	require.True(t, m.Failed)
	require.Len(t, m.Ends, 1, "once, not per runner")
	assert.Contains(t, m.Ends[0].Text, "runner 1 (pod ")
	assert.Contains(t, m.Ends[0].Text, `cannot start: ImagePullBackOff: Back-off pulling image "sse-soak/k6:none"`)
}

// If the user ends a run that does not start, the verdict has the cause.
func TestInterruptedStartNamesItsCause(t *testing.T) {
	t.Parallel()
	m := newTracker(3, testLimits(), noon)
	m.Advance(badImage(noon))
	m.Interrupt()
	require.Len(t, m.Ends, 1)
	assert.Contains(t, m.Ends[0].Text, `cannot start: ImagePullBackOff: Back-off pulling image "sse-soak/k6:none"`)

	m = newTracker(1, testLimits(), noon)
	m.Interrupt()
	assert.Empty(t, m.Ends, "no cause is known")
}

func TestConfiguredTimeoutIsUsed(t *testing.T) {
	t.Parallel()
	limits := testLimits()
	limits.Start, limits.ExplicitStart = 10*time.Minute, true
	m := newTracker(3, limits, noon)
	var news []string
	for after := time.Duration(0); after < 2*time.Minute; after += 10 * time.Second {
		news = append(news, m.Advance(badImage(noon.Add(after)))...)
	}
	require.False(t, m.IsDone())
	require.Len(t, news, 2, "the phase, and the cause once")
	assert.Regexp(t, `^the runner 1 \(pod .* cannot start: ImagePullBackOff: .*; waiting for up to 10m0s$`, news[1])
}

func TestQuotaAndMissingOperatorAreNamed(t *testing.T) {
	t.Parallel()
	limits := testLimits()
	limits.Start = 10 * time.Minute
	quota := func(at time.Time) Snapshot {
		s := snapshot("new")
		s.At, s.Stage = at, "initialization"
		s.Initializer = Part{Job: job(runName+"-initializer", ""), Events: []string{"FailedCreate: Error creating: pods is forbidden: exceeded quota: pods"}}
		return s
	}
	m := newTracker(3, limits, noon)
	assert.Empty(t, m.Suspects(quota(noon)))
	assert.Len(t, m.Suspects(quota(noon.Add(11*time.Second))), 1, "the reason of a missing pod is looked up")
	m.Advance(quota(noon))
	m.Advance(quota(noon.Add(26 * time.Second)))
	require.True(t, m.Failed)
	assert.Contains(t, m.Ends[0].Text, "the initializer (no pod) cannot start: FailedCreate: Error creating: pods is forbidden: exceeded quota: pods")

	m = newTracker(3, limits, noon)
	for _, after := range []time.Duration{0, 26 * time.Second} {
		s := snapshot("new")
		s.At, s.Stage, s.Initializer = noon.Add(after), "", Part{}
		m.Advance(s)
	}
	require.True(t, m.Failed)
	assert.Contains(t, m.Ends[0].Text, "the k6-operator has not processed the TestRun; check that it runs")
}
