//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

// fullFrom returns the lowest load at which a resource was full, as a cell of the report. "–" means that the resource
// was never full. If the report does not list the resource, fullFrom returns "no such row".
func fullFrom(v *verdict.Verdict, resource string) string {
	for _, row := range section(v, "Resource usage").Rows {
		if row[0] == resource {
			return row[3]
		}
	}
	return "no such row"
}

// cpuGroup creates a Linux control group with 1 ms of CPU per 50 ms, and returns the file to which processes are added.
func cpuGroup(t *testing.T) string {
	t.Helper()
	folder, limit := "/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "1000"}
	if _, err := os.Stat(folder); err != nil {
		folder, limit = "/sys/fs/cgroup", map[string]string{"cpu.max": "1000 50000"}
	}
	group, err := os.MkdirTemp(folder, "soak-e2e-")
	if err != nil {
		untested.Skip(t, "this user cannot create control groups")
	}
	t.Cleanup(func() { require.NoError(t, os.Remove(group)) })
	for name, text := range limit {
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o600); err != nil {
			untested.Skip(t, "control groups do not limit CPU here: "+err.Error())
		}
	}
	return filepath.Join(group, "cgroup.procs")
}

// A backend with 20 ms of CPU per second cannot serve 1000 requests per second. The test has no lower load, because a
// lower load might also fail on a busy machine.
func TestControlGroupLimitBreaksAService(t *testing.T) {
	t.Parallel()
	group, m := cpuGroup(t), mark(t)
	r := begin(t, []string{m}, "rampup", "--profile", "smoke", "--stages", "1000", "--stage-seconds", "4", "--warmup-seconds", "3")
	await(t, "the backend must start", func() bool {
		for _, pid := range processes(m) {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && string(name) == "backend\n" {
				return os.WriteFile(group, []byte(fmt.Sprint(pid)), 0o600) == nil
			}
		}
		return false
	})
	v := r.verdict()
	require.Equal(t, "1,000/s", fullFrom(v, "CPU limit of the service"), r.out.String())
	require.Contains(t, factOf(v, "bottleneck"), "CPU limit of the service", r.out.String())
}
