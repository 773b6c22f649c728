package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

const (
	onHost = `{instance=~"$instance"}`
	// wires leaves out what containers make up.
	wires = `{instance=~"$instance",device!~"veth.*|br-.*|docker.*|cali.*|cni.*"}`
)

func host() Board {
	return Board{
		Name: "host", Title: "Soak: the host",
		About: "The machine under the run, as node_exporter (with --collector.tcpstat) and cAdvisor tell: CPU, memory, network, " +
			"and the kernel's own count of connections it had to turn away.",
		Variables: []Variable{instanceOf("node_uname_info", "machines with a node_exporter")},
		Rows: []Row{
			{"CPU and memory", []line{
				{
					graph("CPU by mode", units.PercentUnit,
						"Share of all cores. `steal` is time that the hypervisor gave to others: on a burstable instance it is the end of the credits, and lateness that "+
							"nobody here caused.",
						`sum by (mode) (rate(node_cpu_seconds_total{instance=~"$instance",mode!="idle"}[$__rate_interval]))`+` / scalar(count(node_cpu_seconds_total{instance=~"$instance",mode="idle"}))`, "{{mode}}").stacked(),
					graph("CPU taken by the hypervisor", units.PercentUnit,
						"Steal, as a share of all cores, over one minute: time in which this machine wanted to run and another one did. Above 5 % noops are late by it.",
						`instance:node_cpu_steal:ratio1m`+onHost, "{{instance}}").badFrom(.05),
					graph("Waiting for CPU and memory", units.PercentUnit,
						"Pressure stall information: the share of time in which some task waited for a core or for memory. Above 20 % the machine itself makes noops late.",
						`rate(node_pressure_cpu_waiting_seconds_total`+onHost+`[$__rate_interval])`, "CPU {{instance}}",
						`rate(node_pressure_memory_waiting_seconds_total`+onHost+`[$__rate_interval])`, "memory {{instance}}").badFrom(.2),
				},
				{
					graph("Memory", units.BytesIEC,
						"All memory and what is available to programs without swapping.",
						`node_memory_MemTotal_bytes`+onHost, "total {{instance}}",
						`node_memory_MemAvailable_bytes`+onHost, "available {{instance}}"),
					graph("Out of memory", count,
						"Processes that the kernel killed for want of memory, since the left edge of the dashboard. One of them may be the backend.",
						`node_vmstat_oom_kill`+onHost+` - (node_vmstat_oom_kill`+onHost+` @ start() or node_vmstat_oom_kill`+onHost+` * 0)`, "killed {{instance}}").badFrom(1),
					graph("Load and cores", count,
						"Mean number of tasks that ran or wanted to, over one minute, and the cores there are.",
						`node_load1`+onHost, "load {{instance}}",
						`count by (instance) (node_cpu_seconds_total{instance=~"$instance",mode="idle"})`, "cores {{instance}}").notWhole(),
					graph("Context switches per second", timesPerSecond,
						"A jump without more streams is a busy loop or a fight for a lock.",
						`rate(node_context_switches_total`+onHost+`[$__rate_interval])`, "{{instance}}"),
				},
			}},
			{"Connections", []line{
				{
					graph("Listen overflows and drops", countsPerSecond,
						"Connections that found the accept queue full. Clients see a connect time of 1, 3 or 7 s. Raise net.core.somaxconn and the backlog in nginx.",
						`rate(node_netstat_TcpExt_ListenOverflows`+onHost+`[$__rate_interval])`, "overflows {{instance}}",
						`rate(node_netstat_TcpExt_ListenDrops`+onHost+`[$__rate_interval])`, "drops {{instance}}").badFrom(.01),
					graph("Segments and SYNs sent again", countsPerSecond,
						"TCP retransmits per second, and of them those of a connect. On loopback there are none; on a network a steady share is loss on the way, and each "+
							"costs a noop 200 ms and more.",
						`rate(node_netstat_Tcp_RetransSegs`+onHost+`[$__rate_interval])`, "segments {{instance}}",
						`rate(node_netstat_TcpExt_TCPSynRetrans`+onHost+`[$__rate_interval])`, "SYNs {{instance}}"),
					graph("Segments sent again, as a share", units.PercentUnit,
						"Retransmits as a share of all segments sent. Above 1 % the network is the first suspect.",
						`instance:node_tcp_retransmits:ratio1m`+onHost, "{{instance}}").badFrom(.01),
				},
				{
					graph("Connections by state", count,
						"TCP over IPv4 and IPv6, from node_exporter's collector tcpstat. On one machine both ends of a stream are counted.",
						`sum by (state) (node_tcp_connection_states{instance=~"$instance",state=~"established|syn_sent|syn_recv|time_wait|close_wait|listen"})`, "{{state}}"),
					graph("Connects and resets", countsPerSecond,
						"TCP connections begun and accepted, and resets sent. While streams are held there are few of the first two, from scrapes and remote writes; "+
							"resets beside them are connections that were refused or torn down.",
						`rate(node_netstat_Tcp_ActiveOpens`+onHost+`[$__rate_interval])`, "begun {{instance}}",
						`rate(node_netstat_Tcp_PassiveOpens`+onHost+`[$__rate_interval])`, "accepted {{instance}}",
						`rate(node_netstat_Tcp_OutRsts`+onHost+`[$__rate_interval])`, "resets sent {{instance}}"),
					graph("Sockets", count,
						"TCP sockets in use, in time_wait, and orphans: closed by their program, not yet by the kernel.",
						`node_sockstat_TCP_inuse`+onHost, "in use {{instance}}",
						`node_sockstat_TCP_tw`+onHost, "time_wait {{instance}}",
						`node_sockstat_TCP_orphan`+onHost, "orphans {{instance}}"),
				},
			}},
			{"Network", []line{
				{
					graph("Bytes received", units.BytesPerSecondSI,
						"By interface. A soak's noops are small; a line that rises is something else.",
						`rate(node_network_receive_bytes_total`+wires+`[$__rate_interval])`, "{{device}} {{instance}}"),
					graph("Bytes sent", units.BytesPerSecondSI,
						"By interface. EC2 shapes what is over the instance's baseline, and drops without a word.",
						`rate(node_network_transmit_bytes_total`+wires+`[$__rate_interval])`, "{{device}} {{instance}}"),
					graph("Packets dropped", packetsPerSecond,
						"Packets that the kernel or the interface dropped, both ways.",
						`rate(node_network_receive_drop_total`+wires+`[$__rate_interval])`, "in {{device}} {{instance}}",
						`rate(node_network_transmit_drop_total`+wires+`[$__rate_interval])`, "out {{device}} {{instance}}").badFrom(1),
				},
			}},
			{"Limits", []line{
				{
					graph("Connection tracking", units.PercentUnit,
						"Entries of conntrack as a share of its limit. When it is full the kernel drops new connections (`nf_conntrack: table full`). Empty where the "+
							"module is not loaded.",
						`instance:node_conntrack:ratio`+onHost, "{{instance}}").badFrom(.8),
					graph("File descriptors of the machine", count,
						"Descriptors allocated over all processes; fs.file-max is their limit.",
						`node_filefd_allocated`+onHost, "allocated {{instance}}"),
					graph("Socket memory", units.BytesIEC,
						"Memory in TCP's buffers. It rises where clients do not read: what they leave unread lies here.",
						`node_sockstat_TCP_mem_bytes`+onHost, "TCP {{instance}}"),
				},
				{
					graph("Disk space left", units.PercentUnit,
						"The fullest file system. Shards, logs and Prometheus need some; a full disk makes a run invalid.",
						`instance:node_disk_left:ratio`+onHost, "{{instance}}").badBelow(.1),
					graph("Disks busy", units.PercentUnit,
						"Share of time with a request under way. A checkpoint of a runner waits for the disk, no noop does.",
						`rate(node_disk_io_time_seconds_total{instance=~"$instance",device!~"loop.*|ram.*"}[$__rate_interval])`, "{{device}} {{instance}}"),
				},
			}},
			{"Containers (cAdvisor)", []line{
				{
					graph("CPU by container", units.PercentUnit,
						"Of one core, by container, from cAdvisor. Only where the stack runs in containers.",
						`sum by (name) (rate(container_cpu_usage_seconds_total{name!=""}[$__rate_interval]))`, "{{name}}"),
					graph("Memory by container", units.BytesIEC,
						"Working set by container, from cAdvisor, and its limit, at which the kernel kills it.",
						`sum by (name) (container_memory_working_set_bytes{name!=""})`, "{{name}}",
						`max by (name) (container_spec_memory_limit_bytes{name!=""} > 0)`, limit+"{{name}}"),
					graph("CPU throttled by container", units.PercentUnit,
						"Share of time in which a container was held back by its CPU limit, from cAdvisor. Each is lateness of its own making.",
						`sum by (name) (rate(container_cpu_cfs_throttled_seconds_total{name!=""}[$__rate_interval]))`, "{{name}}").badFrom(.01),
				},
			}},
		},
	}
}
