package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

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
