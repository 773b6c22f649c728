package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/process"
)

// A pinned driver says what it did.
func pinned(t *testing.T, how string, own bool) *local {
	t.Helper()
	r := newRig(t, "")
	r.config.Pin = how
	d := &local{session: newSession(r.config)}
	d.own = own
	d.pin()
	return d
}

func TestTargetAndRunnersGetCoresOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", plan.PinOff} {
		d := pinned(t, how, true)
		require.Empty(t, d.targetCores)
		require.Empty(t, d.runnerCores)
		require.Empty(t, d.seen.Cores)
	}
	d := pinned(t, plan.PinAuto, true)
	if len(process.Allowed()) < 2 {
		require.Empty(t, d.seen.Cores)
		require.Len(t, d.seen.Warnings, 1)
		return
	}
	require.NotEmpty(t, d.targetCores)
	require.NotEmpty(t, d.runnerCores)
	require.NotSubset(t, d.targetCores, d.runnerCores)
	require.Equal(t, "target on core "+d.targetCores.String()+", runners on core "+d.runnerCores.String(), d.seen.Cores)
}

func TestRunnersOfATargetElsewhereHaveAllCores(t *testing.T) {
	t.Parallel()
	d := pinned(t, plan.PinAuto, false)
	require.Empty(t, d.runnerCores)
	require.Equal(t, []string{"PIN=auto: the target is not started here, so the runners have all cores"}, d.seen.Warnings)
}

func TestPinIsOffOrAuto(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.config.Pin = "0-3"
	require.EqualError(t, newSession(r.config).complete(time.Now()), `--pin is "0-3": it is off or auto`)
}
