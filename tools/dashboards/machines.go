package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

const (
	hostSelector = `{instance=~"$instance"}`
	// deviceSelector omits the virtual interfaces of containers.
	deviceSelector = `{instance=~"$instance",device!~"veth.*|br-.*|docker.*|cali.*|cni.*"}`
	// tableRange is the window of the rates in tables. It is fixed, because tables show one moment.
	tableRange = `[1m]`
)

func machines() Board {
	return Board{
		Name: "machines", Title: "Soak: the machines",
		About:     "The machines of a run: CPU, memory, network and disks from node_exporter, containers from cAdvisor, and notices of AWS.",
		Variables: []Variable{instanceOf("node_uname_info", "machines with a node_exporter")},
		Rows: []Row{
			{Title: "Every machine", lines: []line{
				{
					table("Machines", "One row per machine, colored from the value at which messages become late: cores in use, "+
						"time used by the hypervisor, memory in use, connection tracking table, packets dropped per "+
						"second by the machine and by AWS, space used on the fullest disk, processes killed for "+
						"lack of memory in the last hour.",
						column{"CPU", units.PercentUnit, `1 - avg by (instance) (rate(node_cpu_seconds_total{instance=~"$instance",mode="idle"}` + tableRange + `))`, .8},
						column{"Steal", units.PercentUnit, `max by (instance) (instance:node_cpu_steal:ratio1m` + hostSelector + `)`, .05},
						column{"Memory", units.PercentUnit, `max by (instance) (1 - node_memory_MemAvailable_bytes` + hostSelector + ` / node_memory_MemTotal_bytes)`, .9},
						column{"Conntrack", units.PercentUnit, `max by (instance) (instance:node_conntrack:ratio` + hostSelector + `)`, .8},
						column{"Dropped", packetsPerSecond, `sum by (instance) (rate(node_network_receive_drop_total` + deviceSelector + tableRange + `) + rate(node_network_transmit_drop_total` + deviceSelector + tableRange + `))`, 1},
						column{"Dropped by AWS", packetsPerSecond, `sum by (instance) (instance:node_aws_exceeded:rate1m` + hostSelector + `)`, 1},
						column{"Disk used", units.PercentUnit, `max by (instance) (1 - instance:node_disk_left:ratio` + hostSelector + `)`, .9},
						column{"OOM kills", count, `max by (instance) (increase(node_vmstat_oom_kill` + hostSelector + `[1h]))`, 1}),
				},
			}},
			{Title: "AWS", Collapsed: true, lines: []line{
				{
					graph("AWS allowances exceeded", packetsPerSecond,
						"Packets that AWS dropped or queued because the instance exceeded its allowance of "+
							"bandwidth, packets or tracked connections. Such packets can make messages late "+
							"or end connections. Empty elsewhere.",
						`instance:node_aws_exceeded:rate1m`+hostSelector, "{{allowance}} {{instance}}").badFrom(1),
					graph("AWS notices", units.Seconds,
						"Time until an event that AWS has announced: reboot, maintenance, or the end of a spot "+
							"instance. Empty without such an event.",
						`soak_host_notice_timestamp_seconds{instance=~"$instance"} - time()`, "{{what}} {{instance}}").badBelow(3600),
				},
			}},
			{Title: "CPU and memory", Collapsed: true, lines: []line{
				{
					graph("CPU by mode", units.PercentUnit,
						"Share of all cores. `steal` is time that the hypervisor gave to other machines. On a burstable "+
							"instance, it means that the CPU credits are used up.",
						`sum by (mode) (rate(node_cpu_seconds_total{instance=~"$instance",mode!="idle"}[$__rate_interval]))`+` / scalar(count(node_cpu_seconds_total{instance=~"$instance",mode="idle"}))`, "{{mode}}").stack(),
					graph("Waiting for CPU and memory", units.PercentUnit,
						"Pressure stall information: share of the time in which a task waited for a core or for "+
							"memory. Above 20 % the machine makes messages late.",
						`rate(node_pressure_cpu_waiting_seconds_total`+hostSelector+`[$__rate_interval])`, "CPU {{instance}}",
						`rate(node_pressure_memory_waiting_seconds_total`+hostSelector+`[$__rate_interval])`, "memory {{instance}}").badFrom(.2),
				},
			}},
			{Title: "Network and connections", Collapsed: true, lines: []line{
				{
					graph("Listen overflows and drops", countsPerSecond,
						"Connections that found the accept queue full. Their clients need just over 1, 2, 3 or 7 s to "+
							"connect. Raise net.core.somaxconn and the backlog of nginx.",
						`rate(node_netstat_TcpExt_ListenOverflows`+hostSelector+`[$__rate_interval])`, "overflows {{instance}}",
						`rate(node_netstat_TcpExt_ListenDrops`+hostSelector+`[$__rate_interval])`, "drops {{instance}}").badFrom(.01),
					graph("Segments sent again, as a share", units.PercentUnit,
						"Retransmitted segments as a share of all segments sent. Above 1 %, check the network "+
							"first.",
						`instance:node_tcp_retransmits:ratio1m`+hostSelector, "{{instance}}").badFrom(.01),
				},
				{
					graph("Packets dropped", packetsPerSecond,
						"Packets that the kernel or the interface dropped, in both directions.",
						`rate(node_network_receive_drop_total`+deviceSelector+`[$__rate_interval])`, "in {{device}} {{instance}}",
						`rate(node_network_transmit_drop_total`+deviceSelector+`[$__rate_interval])`, "out {{device}} {{instance}}").badFrom(1),
				},
			}},
			{Title: "Containers (cAdvisor)", Collapsed: true, lines: []line{
				{
					graph("CPU by container", units.PercentUnit,
						"Share of one core, from cAdvisor. Empty unless the stack runs in containers.",
						`sum by (name) (rate(container_cpu_usage_seconds_total{name!=""}[$__rate_interval]))`, "{{name}}"),
					graph("Memory by container", units.BytesIEC,
						"Working set, from cAdvisor, and the limit at which the kernel ends the container.",
						`sum by (name) (container_memory_working_set_bytes{name!=""})`, "{{name}}",
						`max by (name) (container_spec_memory_limit_bytes{name!=""} > 0)`, limit+"{{name}}"),
				},
			}},
		},
	}
}

const (
	// backendSelector selects the metrics of the backend process.
	backendSelector = `{job="backend",instance=~"$instance"}`
	backendRSS      = `process_resident_memory_bytes` + backendSelector
)

func service() Board {
	return Board{
		Name: "service", Title: "Soak: the service",
		About:     "The backend, from its /metrics, and the nginx in front of it, from stub_status: leaks, stalls and limits.",
		Variables: []Variable{instanceOf("backend_streams_open", "processes of the backend")},
		Rows: []Row{
			{Title: "Now", lines: []line{
				{
					number("Streams open, share of the limit", units.PercentUnit,
						"Open streams as a share of MAX_CONNECTIONS. At 100 % the backend answers further "+
							"clients with 503.",
						`max(backend_streams_open{instance=~"$instance"} / backend_max_connections{instance=~"$instance"})`, "used").badFrom(.9).withDetails("Refused per second, by reason"),
					number("Descriptors used", units.PercentUnit,
						"Open file descriptors as a share of the limit of the process (ulimit -n). Each stream "+
							"uses one.",
						`max(instance:backend_fds:ratio{instance=~"$instance"})`, "used").badFrom(.8).withDetails("Opened per second"),
					number("Accepted, not handled", count,
						"Connections that nginx dropped since its start, because it had no free "+
							"worker_connections or descriptors. If the value is over 0, raise worker_connections, which "+
							"counts both sides of a stream.",
						`sum(nginx_connections_accepted - nginx_connections_handled)`, "dropped").badFrom(1).withDetails("Connections of nginx by state"),
				},
			}},
			{Title: "Streams and messages", lines: []line{
				{
					graph("Opened per second", countsPerSecond,
						"Streams opened, and how many of them resumed with Last-Event-ID. Streams that open "+
							"during the hold phase are reconnects.",
						`sum(rate(backend_streams_opened_total{instance=~"$instance"}[$__rate_interval]))`, "opened",
						`sum(rate(backend_resumed_total{instance=~"$instance"}[$__rate_interval]))`, "resumed"),
					graph("Closed per second, by reason", countsPerSecond,
						"Streams closed, by reason. `forcedisconnect`: by the DELETE; `client`: by the "+
							"client; `slow`: the client did not read; `replaced`: resumed on another connection; "+
							"`drain`: the service stopped; `error`: the connection broke or a write failed; "+
							"`fault`: injected.",
						`sum by (reason) (rate(backend_streams_closed_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}").stack(),
					graph("Refused per second, by reason", countsPerSecond,
						"Requests for a stream that were answered with an error. `full`: MAX_CONNECTIONS; "+
							"`descriptor`: ulimit -n; `duplicate`: the stream of this id is still open.",
						`sum by (reason) (rate(backend_refused_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}").stack(),
				},
				{
					graph("Time of one broadcast", units.Seconds,
						"Time to write one message to all streams that expect it, in windows of one minute. Percentiles "+
							"are interpolated between the bounds of a histogram. The last stream receives its "+
							"message with this delay.",
						`histogram_quantile(0.5, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}`+noopsWindow+`)))`, "p50",
						`histogram_quantile(0.99, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}`+noopsWindow+`)))`, "p99",
						`sum(rate(backend_broadcast_duration_seconds_sum{instance=~"$instance"}`+noopsWindow+`)) / (sum(rate(backend_broadcast_duration_seconds_count{instance=~"$instance"}`+noopsWindow+`)) > 0)`, "mean").badFrom(1),
				},
			}},
			{Title: "Backend process", lines: []line{
				{
					graph("Memory", units.BytesIEC,
						"Resident memory of the process, the heap in use, and memory that Go has reserved and "+
							"does not use.",
						backendRSS, "resident {{instance}}",
						`go_memstats_heap_inuse_bytes`+backendSelector, "heap in use {{instance}}",
						`go_memstats_heap_idle_bytes`+backendSelector+` - go_memstats_heap_released_bytes`+backendSelector, "heap kept {{instance}}"),
					graph("Growth of memory per hour", units.BytesSI,
						"Slope of the resident memory over 30 minutes. It should be about 0 during the hold "+
							"phase; the first 30 minutes contain the ramp. A lasting slope is a leak.",
						`instance:backend_rss_bytes:slope30m_per_hour{instance=~"$instance"}`, "{{instance}}"),
				},
			}},
			{Title: "nginx", lines: []line{
				{
					graph("Connections of nginx by state", count,
						"Active: all connections. An open stream counts as writing, an idle kept-alive "+
							"connection as waiting, a request whose headers are incomplete as reading.",
						`sum(nginx_connections_active)`, "active",
						`sum(nginx_connections_reading)`, "reading",
						`sum(nginx_connections_writing)`, "writing",
						`sum(nginx_connections_waiting)`, "waiting"),
				},
			}},
		},
	}
}
