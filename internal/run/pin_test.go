package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/live"
)

func TestTargetAndRunnersGetSeparateCores(t *testing.T) {
	t.Parallel()
	remote := []string{"PIN=auto: the target is not started here, so the runners use all cores"}
	for _, c := range []struct {
		suite, mode string
		managed     bool // soak starts the target
		separate    bool
		warnings    []string
	}{
		{"storm", "", true, false, nil},
		{"storm", plan.PinNone, true, false, nil},
		{"cluster", plan.PinNone, true, false, nil},
		{"storm", plan.PinAuto, true, true, nil},
		{"cluster", "", true, true, nil},
		{"storm", plan.PinAuto, false, false, remote},
		{"cluster", "", false, false, nil}, // pinning was not requested
	} {
		d := &local{session: &session{Config: Config{Suite: suiteOf(c.suite), Local: plan.Local{Pin: c.mode}}, managesTarget: c.managed, watch: new(live.Watch)}}
		d.pin()
		if c.separate && len(process.AllowedCPUs()) < 2 {
			require.Equal(t, sharingReason(), d.record.Cores)
			c.separate, c.warnings = false, d.record.Warnings
		}
		require.Equal(t, c.warnings, d.record.Warnings, c)
		require.Equal(t, []int(d.runnerCPUs), d.record.RunnerCores)
		require.Equal(t, c.separate, len(d.targetCPUs) > 0 && len(d.runnerCPUs) > 0, c)
		if c.separate {
			require.NotSubset(t, d.targetCPUs, d.runnerCPUs)
			require.Contains(t, d.record.Cores, "service on "+cpuText(d.targetCPUs)+", runners on "+cpuText(d.runnerCPUs))
		}
	}
	require.Equal(t, []string{"CPU 3", "CPUs 0,2"}, []string{cpuText(process.CPUList{3}), cpuText(process.CPUList{0, 2})})
}
