package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

// Host has the resources of the machine on which soak runs, or of all machines of the target in Prometheus (OfTarget).
type Host struct {
	BusySeconds  float64 `json:"host_cpu_seconds,omitempty"` // sum over all cores
	Available    uint64  `json:"host_memory_available_bytes,omitempty"`
	Sent         uint64  `json:"host_tcp_segments_sent,omitempty"`
	Retransmits  uint64  `json:"host_tcp_retransmits,omitempty"`
	Overflows    uint64  `json:"host_listen_overflows,omitempty"` // connection attempts that found a full accept queue
	Drops        uint64  `json:"host_listen_drops,omitempty"`     // dropped connection attempts, including the overflows
	TimeWait     int     `json:"host_time_wait,omitempty"`        // closed connections whose ports are still in use
	NetworkKnown bool    `json:"host_network_known,omitempty"`    // Sent, Retransmits, Overflows and Drops are known
	ReservedCores
	Capacity
	System
}

// FromHost reads the memory and the kernel's counters of this machine.
func (s *Sample) FromHost() {
	if t, err := cpu.Times(false); err == nil && len(t) == 1 {
		s.BusySeconds = busySeconds(t[0])
	}
	if m, err := mem.VirtualMemory(); err == nil {
		s.Available, s.Memory = m.Available, m.Total
	}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		s.TimeWait = timeWait(fs)
		s.readTraffic(fs)
	}
	self, err := procfs.Self()
	if err != nil {
		return
	}
	tcp, snmpErr := self.Snmp()
	ext, netstatErr := self.Netstat()
	if snmpErr != nil || netstatErr != nil {
		return
	}
	s.Sent, s.Retransmits = count(tcp.OutSegs), count(tcp.RetransSegs)
	s.Overflows, s.Drops = count(ext.ListenOverflows), count(ext.ListenDrops)
	s.NetworkKnown = true
}

func timeWait(fs procfs.FS) int {
	if stat, err := fs.NetSockstat(); err == nil {
		for _, p := range stat.Protocols {
			if p.Protocol == "TCP" && p.TW != nil {
				return *p.TW
			}
		}
	}
	return 0
}

func count(v *float64) uint64 {
	if v == nil || *v < 0 {
		return 0
	}
	return uint64(*v)
}

// ReservedCores has the CPU seconds that all processes used on the cores reserved for the service and for the runners
// (--pin).
type ReservedCores struct {
	ServiceCores float64 `json:"service_cores_cpu_seconds,omitempty"`
	RunnerCores  float64 `json:"runner_cores_cpu_seconds,omitempty"`
}

// FromCores adds the CPU seconds of the reserved cores. It does nothing if no cores are reserved.
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

// busySeconds returns the CPU seconds of t, without idle time. Waiting for I/O counts as idle.
func busySeconds(t cpu.TimesStat) float64 {
	return t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
}

// Capacity has the memory of a machine, and the speed and traffic of its network cards.
type Capacity struct {
	Memory       uint64 `json:"host_memory_bytes,omitempty"`          // total
	LinkRate     uint64 `json:"host_link_bytes_per_second,omitempty"` // per direction, of network cards that report it
	LinkSent     uint64 `json:"host_link_sent_bytes,omitempty"`       // by the same cards
	LinkReceived uint64 `json:"host_link_received_bytes,omitempty"`
	OfTarget     bool   `json:"host_of_target,omitempty"` // Host has the values of the target's machines
}

// readTraffic adds the traffic of all interfaces, and the speed and traffic of the network cards that report their
// speed. An interface without a device, such as loopback or a bridge, is not a card.
func (h *Host) readTraffic(fs procfs.FS) {
	interfaces, err := fs.NetDev()
	if err != nil {
		return
	}
	for name, line := range interfaces {
		h.Received += line.RxBytes
		h.Transmitted += line.TxBytes
		card := filepath.Join("/sys/class/net", name)
		if _, err := os.Stat(filepath.Join(card, "device")); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(card, "speed")) // #nosec G304 -- a file of /sys/class/net
		if err != nil {
			continue
		}
		if megabits, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && megabits > 0 {
			h.LinkRate += uint64(megabits) * 1e6 / 8
			h.LinkSent += line.TxBytes
			h.LinkReceived += line.RxBytes
		}
	}
}

// A Machine describes a computer that performs a run or a measurement.
type Machine struct {
	Name   string `json:"name,omitempty"`
	System string `json:"system,omitempty"` // such as "debian 12.11"
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Cores  int    `json:"cores"`
	Memory uint64 `json:"memory_bytes,omitempty"`
}

// ThisMachine returns the description of this machine. Unknown fields are empty.
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
