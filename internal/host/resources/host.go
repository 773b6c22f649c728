package resources

import (
	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
)

// Host has the resources of the machine of `soak run`, or the sum over the machines of the target that Prometheus
// watches.
type Host struct {
	BusySeconds  float64 `json:"host_cpu_seconds,omitempty"` // sum over all cores
	Available    uint64  `json:"host_memory_available_bytes,omitempty"`
	Sent         uint64  `json:"host_tcp_segments_sent,omitempty"`
	Retransmits  uint64  `json:"host_tcp_retransmits,omitempty"`
	Overflows    uint64  `json:"host_listen_overflows,omitempty"` // connects to a full accept queue
	Drops        uint64  `json:"host_listen_drops,omitempty"`     // connects that the kernel dropped, including the overflows
	TimeWait     int     `json:"host_time_wait,omitempty"`        // closed connections whose ports are in use
	NetworkKnown bool    `json:"host_network_known,omitempty"`    // Sent, Retransmits, Overflows and Drops are known
	ReservedCores
	Capacity
	System
}

// FromHost reads the counters of the kernel of this machine.
func (s *Sample) FromHost() {
	if t, err := cpu.Times(false); err == nil && len(t) == 1 {
		s.BusySeconds = busySeconds(t[0])
	}
	if m, err := mem.VirtualMemory(); err == nil {
		s.Available, s.Memory = m.Available, m.Total
	}
	s.readLinks()
	if fs, err := procfs.NewDefaultFS(); err == nil {
		s.TimeWait = timeWait(fs)
		s.readBytes(fs)
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

// timeWait returns the number of connections in the state TIME_WAIT, or 0 if it is unknown.
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

// count returns a counter of the kernel, or 0 if it is missing.
func count(v *float64) uint64 {
	if v == nil || *v < 0 {
		return 0
	}
	return uint64(*v)
}
