package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

const (
	onHost = `{instance=~"$instance"}`
	// wires leaves out what containers make up.
	wires = `{instance=~"$instance",device!~"veth.*|br-.*|docker.*|cali.*|cni.*"}`
)

func host() Board {
	return Board{
		Name:  "host",
		Title: "Soak: the host",
		About: "The machine under the run, as node_exporter (with --collector.tcpstat) and cAdvisor tell: CPU, memory, network, " +
			"and the kernel's own count of connections it had to turn away.",
		Variables: []Variable{
			instanceOf("node_uname_info", "machines with a node_exporter"),
		},
		Rows: []Row{
			{Title: "CPU and memory", Panels: hostCPU()},
			{Title: "Connections", Panels: hostConnections()},
			{Title: "Network", Panels: hostNetwork()},
			{Title: "Limits", Panels: hostLimits()},
			{Title: "Containers (cAdvisor)", Panels: hostContainers()},
		},
	}
}

func hostCPU() []Panel {
	return []Panel{
		{
			Title: "CPU by mode", Width: 8, Unit: units.PercentUnit, Stacked: true,
			About: "Share of all cores. `steal` is time that the hypervisor gave to others: on a burstable instance it is the end of " +
				"the credits, and lateness that nobody here caused.",
			Queries: []Query{{`sum by (mode) (rate(node_cpu_seconds_total{instance=~"$instance",mode!="idle"}[$__rate_interval]))` +
				` / scalar(count(node_cpu_seconds_total{instance=~"$instance",mode="idle"}))`, "{{mode}}"}},
		},
		{
			Title: "Load and cores", Width: 8, Unit: units.Short,
			About: "Mean number of tasks that ran or wanted to, over one minute, and the cores there are.",
			Queries: []Query{
				{`node_load1` + onHost, "load {{instance}}"},
				{`count by (instance) (node_cpu_seconds_total{instance=~"$instance",mode="idle"})`, "cores {{instance}}"},
			},
		},
		{
			Title: "Waiting for CPU and memory", Width: 8, Unit: units.PercentUnit, Limit: atMost(.2),
			About: "Pressure stall information: the share of time in which some task waited for a core or for memory. Above 20 % the " +
				"machine itself makes noops late.",
			Queries: []Query{
				{`rate(node_pressure_cpu_waiting_seconds_total` + onHost + `[$__rate_interval])`, "CPU {{instance}}"},
				{`rate(node_pressure_memory_waiting_seconds_total` + onHost + `[$__rate_interval])`, "memory {{instance}}"},
			},
		},
		{
			Title: "Memory", Width: 8, Unit: units.BytesIEC,
			About: "All memory and what is available to programs without swapping.",
			Queries: []Query{
				{`node_memory_MemTotal_bytes` + onHost, "total {{instance}}"},
				{`node_memory_MemAvailable_bytes` + onHost, "available {{instance}}"},
			},
		},
		{
			Title: "Out of memory", Width: 8, Unit: units.Short, Limit: atMost(1),
			About:   "Processes that the kernel killed for want of memory, since the left edge of the dashboard. One of them may be the backend.",
			Queries: []Query{{`node_vmstat_oom_kill` + onHost + ` - (node_vmstat_oom_kill` + onHost + ` @ start() or node_vmstat_oom_kill` + onHost + ` * 0)`, "killed {{instance}}"}},
		},
		{
			Title: "Context switches per second", Width: 8, Unit: units.OpsPerSecond,
			About:   "A jump without more streams is a busy loop or a fight for a lock.",
			Queries: []Query{{`rate(node_context_switches_total` + onHost + `[$__rate_interval])`, "{{instance}}"}},
		},
	}
}

func hostConnections() []Panel {
	return []Panel{
		{
			Title: "Listen overflows and drops", Width: 8, Unit: units.CountsPerSecond, Limit: atMost(.01),
			About: "Connections that found the accept queue full. Clients see a connect time of 1, 3 or 7 s. Raise net.core.somaxconn and " +
				"the backlog in nginx.",
			Queries: []Query{
				{`rate(node_netstat_TcpExt_ListenOverflows` + onHost + `[$__rate_interval])`, "overflows {{instance}}"},
				{`rate(node_netstat_TcpExt_ListenDrops` + onHost + `[$__rate_interval])`, "drops {{instance}}"},
			},
		},
		{
			Title: "Segments and SYNs sent again", Width: 8, Unit: units.CountsPerSecond,
			About: "TCP retransmits per second, and of them those of a connect. On loopback there are none; on a network a steady share " +
				"is loss on the way, and each costs a noop 200 ms and more.",
			Queries: []Query{
				{`rate(node_netstat_Tcp_RetransSegs` + onHost + `[$__rate_interval])`, "segments {{instance}}"},
				{`rate(node_netstat_TcpExt_TCPSynRetrans` + onHost + `[$__rate_interval])`, "SYNs {{instance}}"},
			},
		},
		{
			Title: "Segments sent again, as a share", Width: 8, Unit: units.PercentUnit, Limit: atMost(.01),
			About:   "Retransmits as a share of all segments sent. Above 1 % the network is the first suspect.",
			Queries: []Query{{`instance:node_tcp_retransmits:ratio1m` + onHost, "{{instance}}"}},
		},
		{
			Title: "Connections by state", Width: 8, Unit: units.Short,
			About:   "TCP over IPv4 and IPv6, from node_exporter's collector tcpstat. On one machine both ends of a stream are counted.",
			Queries: []Query{{`sum by (state) (node_tcp_connection_states{instance=~"$instance",state=~"established|syn_sent|syn_recv|time_wait|close_wait|listen"})`, "{{state}}"}},
		},
		{
			Title: "Connects and resets", Width: 8, Unit: units.CountsPerSecond,
			About: "TCP connections begun and accepted, and resets sent. While streams are held there are few of the first two, from " +
				"scrapes and remote writes; resets beside them are connections that were refused or torn down.",
			Queries: []Query{
				{`rate(node_netstat_Tcp_ActiveOpens` + onHost + `[$__rate_interval])`, "begun {{instance}}"},
				{`rate(node_netstat_Tcp_PassiveOpens` + onHost + `[$__rate_interval])`, "accepted {{instance}}"},
				{`rate(node_netstat_Tcp_OutRsts` + onHost + `[$__rate_interval])`, "resets sent {{instance}}"},
			},
		},
		{
			Title: "Sockets", Width: 8, Unit: units.Short,
			About: "TCP sockets in use, in time_wait, and orphans: closed by their program, not yet by the kernel.",
			Queries: []Query{
				{`node_sockstat_TCP_inuse` + onHost, "in use {{instance}}"},
				{`node_sockstat_TCP_tw` + onHost, "time_wait {{instance}}"},
				{`node_sockstat_TCP_orphan` + onHost, "orphans {{instance}}"},
			},
		},
	}
}

func hostNetwork() []Panel {
	return []Panel{
		{
			Title: "Bytes received", Width: 8, Unit: units.BytesPerSecondSI,
			About:   "By interface. A soak's noops are small; a line that rises is something else.",
			Queries: []Query{{`rate(node_network_receive_bytes_total` + wires + `[$__rate_interval])`, "{{device}} {{instance}}"}},
		},
		{
			Title: "Bytes sent", Width: 8, Unit: units.BytesPerSecondSI,
			About:   "By interface. EC2 shapes what is over the instance's baseline, and drops without a word.",
			Queries: []Query{{`rate(node_network_transmit_bytes_total` + wires + `[$__rate_interval])`, "{{device}} {{instance}}"}},
		},
		{
			Title: "Packets dropped", Width: 8, Unit: units.PacketsPerSecond, Limit: atMost(1),
			About: "Packets that the kernel or the interface dropped, both ways.",
			Queries: []Query{
				{`rate(node_network_receive_drop_total` + wires + `[$__rate_interval])`, "in {{device}} {{instance}}"},
				{`rate(node_network_transmit_drop_total` + wires + `[$__rate_interval])`, "out {{device}} {{instance}}"},
			},
		},
	}
}

func hostLimits() []Panel {
	return []Panel{
		{
			Title: "Connection tracking", Width: 8, Unit: units.PercentUnit, Limit: atMost(.8),
			About: "Entries of conntrack as a share of its limit. When it is full the kernel drops new connections " +
				"(`nf_conntrack: table full`). Empty where the module is not loaded.",
			Queries: []Query{{`instance:node_conntrack:ratio` + onHost, "{{instance}}"}},
		},
		{
			Title: "File descriptors of the machine", Width: 8, Unit: units.Short,
			About:   "Descriptors allocated over all processes; fs.file-max is their limit.",
			Queries: []Query{{`node_filefd_allocated` + onHost, "allocated {{instance}}"}},
		},
		{
			Title: "Socket memory", Width: 8, Unit: units.BytesIEC,
			About:   "Memory in TCP's buffers. It rises where clients do not read: what they leave unread lies here.",
			Queries: []Query{{`node_sockstat_TCP_mem_bytes` + onHost, "TCP {{instance}}"}},
		},
		{
			Title: "Disk space left", Width: 12, Unit: units.PercentUnit, Limit: atLeast(.1),
			About: "The fullest file system. Shards, logs and Prometheus need some; a full disk makes a run invalid.",
			Queries: []Query{{`min by (instance) (node_filesystem_avail_bytes{instance=~"$instance",fstype!~"tmpfs|ramfs|squashfs|overlay|iso9660"}` +
				` / (node_filesystem_size_bytes{instance=~"$instance",fstype!~"tmpfs|ramfs|squashfs|overlay|iso9660"} > 0))`, "{{instance}}"}},
		},
		{
			Title: "Disks busy", Width: 12, Unit: units.PercentUnit,
			About:   "Share of time with a request under way. A checkpoint of a runner waits for the disk, no noop does.",
			Queries: []Query{{`rate(node_disk_io_time_seconds_total{instance=~"$instance",device!~"loop.*|ram.*"}[$__rate_interval])`, "{{device}} {{instance}}"}},
		},
	}
}

// hostContainers have no instance: cAdvisor's target is its own, and one per machine.
func hostContainers() []Panel {
	return []Panel{
		{
			Title: "CPU by container", Width: 8, Unit: units.PercentUnit,
			About:   "Of one core, by container, from cAdvisor. Only where the stack runs in containers.",
			Queries: []Query{{`sum by (name) (rate(container_cpu_usage_seconds_total{name!=""}[$__rate_interval]))`, "{{name}}"}},
		},
		{
			Title: "Memory by container", Width: 8, Unit: units.BytesIEC,
			About:   "Working set by container, from cAdvisor: what counts against its limit.",
			Queries: []Query{{`sum by (name) (container_memory_working_set_bytes{name!=""})`, "{{name}}"}},
		},
		{
			Title: "CPU throttled by container", Width: 8, Unit: units.PercentUnit, Limit: atMost(.01),
			About:   "Share of time in which a container was held back by its CPU limit, from cAdvisor. Each is lateness of its own making.",
			Queries: []Query{{`sum by (name) (rate(container_cpu_cfs_throttled_seconds_total{name!=""}[$__rate_interval]))`, "{{name}}"}},
		},
	}
}
