package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// newPinnedDriver returns a driver after pin has chosen its cores.
func newPinnedDriver(t *testing.T, kind suite.Suite, mode string, managesTarget bool) *local {
	t.Helper()
	r := newRig(t, "")
	r.config.Suite, r.config.Pin = kind, mode
	d := &local{session: newSession(r.config)}
	d.managesTarget = managesTarget
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
		require.Empty(t, d.targetCPUs)
		require.Empty(t, d.runnerCPUs)
		require.Empty(t, d.record.Cores)
	}
	for _, d := range []*local{newPinnedDriver(t, suite.Default(), plan.PinAuto, true), newPinnedDriver(t, clusterSuite, "", true)} {
		if len(process.AllowedCPUs()) < 2 {
			require.Equal(t, sharingReason(), d.record.Cores)
			require.Empty(t, d.record.ServiceCores)
			continue
		}
		require.NotEmpty(t, d.targetCPUs)
		require.NotEmpty(t, d.runnerCPUs)
		require.NotSubset(t, d.targetCPUs, d.runnerCPUs)
		require.Contains(t, d.record.Cores, "service on "+cpuText(d.targetCPUs)+", runners on "+cpuText(d.runnerCPUs))
		require.Equal(t, []int(d.runnerCPUs), d.record.RunnerCores)
		require.Empty(t, d.record.Warnings)
	}
}

func TestReservedCPUsAreNamed(t *testing.T) {
	t.Parallel()
	require.Equal(t, "CPU 3", cpuText(process.CPUList{3}))
	require.Equal(t, "CPUs 0,2", cpuText(process.CPUList{0, 2}))
}

func TestRunnersOfARemoteTargetGetAllCores(t *testing.T) {
	t.Parallel()
	d := newPinnedDriver(t, suite.Default(), plan.PinAuto, false)
	require.Empty(t, d.runnerCPUs)
	require.Equal(t, []string{"PIN=auto: the target is not started here, so the runners use all cores"}, d.record.Warnings)
	clusterSuite, err := suite.ByName(plan.Plan{Suite: "cluster"})
	require.NoError(t, err)
	d = newPinnedDriver(t, clusterSuite, "", false)
	require.Empty(t, d.runnerCPUs)
	require.Empty(t, d.record.Warnings, "pinning was not requested")
}
