package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The machine may have been suspended before the runner started, and the first reading may fail.
func TestSleepClockCountsFromItsFirstReading(t *testing.T) {
	t.Parallel()
	now, succeeds := time.Hour, false
	c := newSleepClock(func() (time.Duration, bool) { return now, succeeds })
	succeeds = true
	require.Zero(t, c.duration(), "time before the first reading must not count")
	now += 50 * time.Millisecond
	require.Zero(t, c.duration(), "a small difference from reading the clocks in sequence must not count")
	now = time.Hour + time.Minute
	require.Equal(t, time.Minute, c.duration())
	succeeds = false
	require.Zero(t, c.duration())
}

// A runner ends after a suspension of its machine only if another process can replace the runner.
func TestOnlyAPlainSoakIsReplaceable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(o *soakOutput)
		want bool
	}{
		"a soak":            {func(*soakOutput) {}, true},
		"k6 alone":          {func(o *soakOutput) { delete(o.environment, plan.DocumentVariable) }, false},
		"a named file":      {func(o *soakOutput) { o.explicitName = true }, false},
		"planned cuts":      {func(o *soakOutput) { o.recorder.plan.CutsPerSecond = 1 }, false},
		"a declared suite":  {func(o *soakOutput) { o.recorder.suite = new(shard.Suite) }, false},
		"the publisher":     {func(o *soakOutput) { o.recorder.plan.PublishRate, o.recorder.plan.Topics = 1, 1 }, false},
		"not the publisher": {func(o *soakOutput) { o.recorder.plan.PublishRate, o.recorder.plan.Topics, o.runner.Index = 1, 1, 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newTestOutput(t, params(t, t.TempDir(), map[string]string{"RUNNER": "1"}))
			o.environment[plan.DocumentVariable] = "{}"
			c.edit(o)
			require.Equal(t, c.want, o.isReplaceable())
		})
	}
}

func TestRunnerIsNotRestartedAtTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	o := newTestOutput(t, params(t, t.TempDir(), map[string]string{"RUNNER": "1"}))
	planned := o.recorder.planCopy()
	end := o.runner.Started().Add(time.Duration(planned.Seconds) * time.Second)
	require.EqualError(t, o.restart(end.Add(-plan.DisconnectLead*time.Second)), "the run was over when the machine woke up")
	close(o.stop)
	require.EqualError(t, o.restart(o.runner.Started()), "the run was stopped")
}
