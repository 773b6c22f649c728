package resources

import (
	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
)

// Host is what the machine of a Sample takes: that of `soak run`, or with Prometheus all that it
// watches.
type Host struct {
	BusySeconds  float64 `json:"host_cpu_seconds,omitempty"` // of all cores together
	Available    uint64  `json:"host_memory_available_bytes,omitempty"`
	Sent         uint64  `json:"host_tcp_segments_sent,omitempty"`
	Retransmits  uint64  `json:"host_tcp_retransmits,omitempty"`
	Overflows    uint64  `json:"host_listen_overflows,omitempty"` // connects that found an accept queue full
	Drops        uint64  `json:"host_listen_drops,omitempty"`     // connects that the kernel dropped, those among them
	TimeWait     int     `json:"host_time_wait,omitempty"`        // closed connections of which the host keeps the ports
	NetworkKnown bool    `json:"host_network_known,omitempty"`    // 0 of these is a count, not a gap
	OwnCores
	Room
	System
}

// FromHost reads the counters of this machine that its kernel shows.
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

// timeWait is how many connections over IPv4 and IPv6 are in that state; 0: none, or the kernel does not show it.
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

// count is a counter of the kernel, 0 where it has none.
func count(v *float64) uint64 {
	if v == nil || *v < 0 {
		return 0
	}
	return uint64(*v)
}
