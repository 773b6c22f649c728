package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// newPinnedDriver returns a driver after pin has chosen its cores.
func newPinnedDriver(t *testing.T, kind suite.Suite, mode string, ownTarget bool) *local {
	t.Helper()
	r := newRig(t, "")
	r.config.Suite, r.config.Pin = kind, mode
	d := &local{session: newSession(r.config)}
	d.managesTarget = ownTarget
	d.pin()
	return d
}

func TestTargetAndRunnersGetSeparateCores(t *testing.T) {
	t.Parallel()
	clusterSuite, err := suite.ByName(plan.Plan{Suite: "cluster"})
	require.NoError(t, err)
	for _, d := range []*local{
		newPinnedDriver(t, suite.Default(), "", true), newPinnedDriver(t, suite.Default(), plan.PinNone, true), newPinnedDriver(t, clusterSuite, plan.PinNone, true),
	} {
		require.Empty(t, d.targetCores)
		require.Empty(t, d.runnerCores)
		require.Empty(t, d.record.Cores)
	}
	for _, d := range []*local{newPinnedDriver(t, suite.Default(), plan.PinAuto, true), newPinnedDriver(t, clusterSuite, "", true)} {
		if len(process.Allowed()) < 2 {
			require.Equal(t, sharingReason(), d.record.Cores)
			require.Empty(t, d.record.ServiceCores)
			continue
		}
		require.NotEmpty(t, d.targetCores)
		require.NotEmpty(t, d.runnerCores)
		require.NotSubset(t, d.targetCores, d.runnerCores)
		require.Contains(t, d.record.Cores, "service on core "+d.targetCores.String()+", runners on core "+d.runnerCores.String())
		require.Equal(t, []int(d.runnerCores), d.record.RunnerCores)
		require.Empty(t, d.record.Warnings)
	}
}

func TestRunnersOfARemoteTargetGetAllCores(t *testing.T) {
	t.Parallel()
	d := newPinnedDriver(t, suite.Default(), plan.PinAuto, false)
	require.Empty(t, d.runnerCores)
	require.Equal(t, []string{"PIN=auto: the target is not started here, so the runners use all cores"}, d.record.Warnings)
	clusterSuite, err := suite.ByName(plan.Plan{Suite: "cluster"})
	require.NoError(t, err)
	d = newPinnedDriver(t, clusterSuite, "", false)
	require.Empty(t, d.runnerCores)
	require.Empty(t, d.record.Warnings, "pinning was not requested")
}
