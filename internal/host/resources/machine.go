package resources

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// A Machine identifies the computer of a run.
type Machine struct {
	Name   string `json:"name,omitempty"`
	System string `json:"system,omitempty"` // "debian 12.11"
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores"`
	Memory uint64 `json:"memory_bytes,omitempty"`
}

// ThisMachine describes this machine. Unknown fields are empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU()}
	if info, err := host.Info(); err == nil {
		m.Name, m.Kernel = info.Hostname, info.KernelVersion
		m.System = strings.TrimSpace(fmt.Sprintf("%s %s", info.Platform, info.PlatformVersion))
	}
	if info, err := cpu.Info(); err == nil && len(info) > 0 {
		m.CPU = info[0].ModelName
	}
	if v, err := mem.VirtualMemory(); err == nil {
		m.Memory = v.Total
	}
	return m
}
