package resources

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
)

// ReservedCores has the CPU seconds of all processes on the cores that are reserved for the service and for the runners (--pin).
type ReservedCores struct {
	ServiceCores float64 `json:"service_cores_cpu_seconds,omitempty"`
	RunnerCores  float64 `json:"runner_cores_cpu_seconds,omitempty"`
}

// FromCores reads the CPU seconds of reserved cores. It does nothing if none are reserved.
func (s *Sample) FromCores(service, runners []int) {
	if len(service) == 0 {
		return
	}
	all, err := cpu.Times(true)
	if err != nil {
		return
	}
	for _, t := range all {
		n, err := strconv.Atoi(strings.TrimPrefix(t.CPU, "cpu"))
		switch {
		case err != nil:
		case slices.Contains(service, n):
			s.ServiceCores += busySeconds(t)
		case slices.Contains(runners, n):
			s.RunnerCores += busySeconds(t)
		}
	}
}

// busySeconds returns the CPU seconds in which a core was not idle. Waiting for I/O counts as idle.
func busySeconds(t cpu.TimesStat) float64 {
	return t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
}
