package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

const (
	onHost = `{instance=~"$instance"}`
	// wires leaves out what containers make up.
	wires = `{instance=~"$instance",device!~"veth.*|br-.*|docker.*|cali.*|cni.*"}`
	// latest bounds a rate in a table, which shows one moment.
	latest = `[1m]`
)

func machines() Board {
	return Board{
		Name: "machines", Title: "Soak: the machines",
		About: "The machines of a run, one row each: what node_exporter (with --collector.tcpstat) and cAdvisor report of CPU, memory, network and disks, " +
			"and what AWS dropped or announced.",
		Variables: []Variable{instanceOf("node_uname_info", "machines with a node_exporter")},
		Rows: []Row{
			{Title: "Every machine", lines: []line{
				{
					table("Machines", "One row per machine, coloured from the value at which it makes messages late: cores in use, time taken by the hypervisor, memory "+
						"in use, connection tracking, packets dropped per second here and by AWS, space left on the fullest disk, processes killed for want of memory.",
						column{"CPU", units.PercentUnit, `1 - avg by (instance) (rate(node_cpu_seconds_total{instance=~"$instance",mode="idle"}` + latest + `))`, .8},
						column{"Steal", units.PercentUnit, `max by (instance) (instance:node_cpu_steal:ratio1m` + onHost + `)`, .05},
						column{"Memory", units.PercentUnit, `max by (instance) (1 - node_memory_MemAvailable_bytes` + onHost + ` / node_memory_MemTotal_bytes)`, .9},
						column{"Conntrack", units.PercentUnit, `max by (instance) (instance:node_conntrack:ratio` + onHost + `)`, .8},
						column{"Dropped", packetsPerSecond, `sum by (instance) (rate(node_network_receive_drop_total` + wires + latest + `) + rate(node_network_transmit_drop_total` + wires + latest + `))`, 1},
						column{"Dropped by AWS", packetsPerSecond, `sum by (instance) (instance:node_aws_exceeded:rate1m` + onHost + `)`, 1},
						column{"Disk used", units.PercentUnit, `max by (instance) (1 - instance:node_disk_left:ratio` + onHost + `)`, .9},
						column{"OOM kills", count, `max by (instance) (increase(node_vmstat_oom_kill` + onHost + `[1h]))`, 1}),
				},
			}},
			{Title: "AWS", Collapsed: true, lines: []line{
				{
					graph("AWS allowances exceeded", packetsPerSecond,
						"Packets that AWS dropped or queued because the instance was over its allowance of bandwidth, packets or tracked connections; a run with some "+
							"is in doubt. Empty elsewhere.",
						`instance:node_aws_exceeded:rate1m`+onHost, "{{allowance}} {{instance}}").badFrom(1),
					graph("Notices of AWS", units.Seconds,
						"Time until an event that AWS announced: a reboot, maintenance, the end of a spot instance. Empty if none is announced.",
						`soak_host_notice_timestamp_seconds{instance=~"$instance"} - time()`, "{{what}} {{instance}}").badBelow(3600),
				},
			}},
			{Title: "CPU and memory", Collapsed: true, lines: []line{
				{
					graph("CPU by mode", units.PercentUnit,
						"Share of all cores. `steal` is time that the hypervisor gave to others: on a burstable instance it is the end of the credits, and lateness that "+
							"nobody here caused.",
						`sum by (mode) (rate(node_cpu_seconds_total{instance=~"$instance",mode!="idle"}[$__rate_interval]))`+` / scalar(count(node_cpu_seconds_total{instance=~"$instance",mode="idle"}))`, "{{mode}}").stacked(),
					graph("Waiting for CPU and memory", units.PercentUnit,
						"Pressure stall information: the share of time in which some task waited for a core or for memory. Above 20 % the machine itself makes noops late.",
						`rate(node_pressure_cpu_waiting_seconds_total`+onHost+`[$__rate_interval])`, "CPU {{instance}}",
						`rate(node_pressure_memory_waiting_seconds_total`+onHost+`[$__rate_interval])`, "memory {{instance}}").badFrom(.2),
				},
			}},
			{Title: "Network and connections", Collapsed: true, lines: []line{
				{
					graph("Listen overflows and drops", countsPerSecond,
						"Connections that found the accept queue full. Clients see a connect time of 1, 3 or 7 s. Raise net.core.somaxconn and the backlog in nginx.",
						`rate(node_netstat_TcpExt_ListenOverflows`+onHost+`[$__rate_interval])`, "overflows {{instance}}",
						`rate(node_netstat_TcpExt_ListenDrops`+onHost+`[$__rate_interval])`, "drops {{instance}}").badFrom(.01),
					graph("Segments sent again, as a share", units.PercentUnit,
						"Retransmits as a share of all segments sent. Above 1 % the network is the first suspect.",
						`instance:node_tcp_retransmits:ratio1m`+onHost, "{{instance}}").badFrom(.01),
					graph("Connections by state", count,
						"TCP over IPv4 and IPv6, from node_exporter's collector tcpstat. On one machine both ends of a stream are counted.",
						`sum by (state) (node_tcp_connection_states{instance=~"$instance",state=~"established|syn_sent|syn_recv|time_wait|close_wait|listen"})`, "{{state}}"),
				},
				{
					graph("Bytes sent", units.BytesPerSecondSI,
						"By interface. EC2 shapes traffic above the baseline of the instance, and drops packets without a notice.",
						`rate(node_network_transmit_bytes_total`+wires+`[$__rate_interval])`, "{{device}} {{instance}}"),
					graph("Packets dropped", packetsPerSecond,
						"Packets that the kernel or the interface dropped, both ways.",
						`rate(node_network_receive_drop_total`+wires+`[$__rate_interval])`, "in {{device}} {{instance}}",
						`rate(node_network_transmit_drop_total`+wires+`[$__rate_interval])`, "out {{device}} {{instance}}").badFrom(1),
				},
			}},
			{Title: "Disks", Collapsed: true, lines: []line{
				{
					graph("Disks busy", units.PercentUnit,
						"Share of time with a request under way. A checkpoint of a runner waits for the disk, no noop does.",
						`rate(node_disk_io_time_seconds_total{instance=~"$instance",device!~"loop.*|ram.*"}[$__rate_interval])`, "{{device}} {{instance}}"),
				},
			}},
			{Title: "Containers (cAdvisor)", Collapsed: true, lines: []line{
				{
					graph("CPU by container", units.PercentUnit,
						"Of one core, by container, from cAdvisor. Only where the stack runs in containers.",
						`sum by (name) (rate(container_cpu_usage_seconds_total{name!=""}[$__rate_interval]))`, "{{name}}"),
					graph("Memory by container", units.BytesIEC,
						"Working set by container, from cAdvisor, and its limit, at which the kernel kills it.",
						`sum by (name) (container_memory_working_set_bytes{name!=""})`, "{{name}}",
						`max by (name) (container_spec_memory_limit_bytes{name!=""} > 0)`, limit+"{{name}}"),
				},
			}},
		},
	}
}
