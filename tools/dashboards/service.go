package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

const (
	// ofBackend selects the metrics of the backend's process.
	ofBackend  = `{job="backend",instance=~"$instance"}`
	backendRSS = `process_resident_memory_bytes` + ofBackend
)

func service() Board {
	return Board{
		Name: "service", Title: "Soak: the service",
		About:     "The SSE service from the inside, by its own /metrics, and nginx in front of it, by stub_status: the figures that show a leak, a stall or a limit.",
		Variables: []Variable{instanceOf("backend_streams_open", "processes of the backend")},
		Rows: []Row{
			{Title: "Now", lines: []line{
				{
					number("Streams, of the limit", units.PercentUnit,
						"Open streams as a share of MAX_CONNECTIONS. At 100 % further clients are refused with 503.",
						`max(backend_streams_open{instance=~"$instance"} / backend_max_connections{instance=~"$instance"})`, "used").badFrom(.9).explainedBy("Refused per second, by reason"),
					number("Descriptors used", units.PercentUnit,
						"Open file descriptors as a share of the process's limit (ulimit -n). Each stream takes one.",
						`max(instance:backend_fds:ratio{instance=~"$instance"})`, "used").badFrom(.8).explainedBy("File descriptors"),
					number("Accepted, not handled", count,
						"Connections that nginx dropped because worker_connections or descriptors were used up, since it started. One is enough to raise "+
							"worker_connections, which counts both sides of each stream.",
						`sum(nginx_connections_accepted - nginx_connections_handled)`, "dropped").badFrom(1).explainedBy("Connections of nginx by state"),
					number("Connections without a stream", count,
						"Connections of clients minus the streams that the backend holds. A few are the scrape and requests under way. Many: streams that one side lost "+
							"and the other still holds.",
						`sum(nginx_connections_active) - sum(backend_streams_open)`, "difference"),
				},
			}},
			{Title: "Streams and messages", lines: []line{
				{
					graph("Opened per second", countsPerSecond,
						"Streams opened, and of them those that went on by Last-Event-ID. Opening while a run holds means clients reconnect.",
						`sum(rate(backend_streams_opened_total{instance=~"$instance"}[$__rate_interval]))`, "opened",
						`sum(rate(backend_resumed_total{instance=~"$instance"}[$__rate_interval]))`, "resumed"),
					graph("Closed per second, by reason", countsPerSecond,
						"Over the last seconds: `forcedisconnect` is the DELETE; `client` a client that went; `slow` one that did not read; `replaced` a resumed stream; "+
							"`drain` the end of the service; `error` a broken connection; `fault` was injected.",
						`sum by (reason) (rate(backend_streams_closed_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}").stacked(),
					graph("Refused per second, by reason", countsPerSecond,
						"Connects that were answered with an error: `full` is MAX_CONNECTIONS, `descriptor` ulimit -n, `duplicate` an id whose stream is still open.",
						`sum by (reason) (rate(backend_refused_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}").stacked(),
				},
				{
					graph("Time of one broadcast", units.Seconds,
						"How long it takes to write one noop or message to all streams that are due, over one minute, from a histogram: figures between two bounds of it "+
							"are interpolated. The last stream gets its noop this late.",
						`histogram_quantile(0.5, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}`+noopsWindow+`)))`, "p50",
						`histogram_quantile(0.99, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}`+noopsWindow+`)))`, "p99",
						`sum(rate(backend_broadcast_duration_seconds_sum{instance=~"$instance"}`+noopsWindow+`)) / (sum(rate(backend_broadcast_duration_seconds_count{instance=~"$instance"}`+noopsWindow+`)) > 0)`, "mean").badFrom(1),
					graph("Slow clients and failed writes", countsPerSecond,
						"Streams cut off because the client did not read, and writes that failed. Both are 0 in a clean run.",
						`sum(rate(backend_slow_consumers_total{instance=~"$instance"}[$__rate_interval]))`, "slow clients cut off",
						`sum(rate(backend_send_errors_total{instance=~"$instance"}[$__rate_interval]))`, "failed writes"),
				},
			}},
			{Title: "The process of the backend", lines: []line{
				{
					graph("Memory", units.BytesIEC,
						"Resident set of the process; the heap that Go uses of it; and what Go holds of the kernel without using it.",
						backendRSS, "resident {{instance}}",
						`go_memstats_heap_inuse_bytes`+ofBackend, "heap in use {{instance}}",
						`go_memstats_heap_idle_bytes`+ofBackend+` - go_memstats_heap_released_bytes`+ofBackend, "heap kept {{instance}}"),
					graph("Growth of memory per hour", units.BytesSI,
						"Slope of the resident set over 30 minutes, in bytes per hour. While streams are held it should be about 0. The ramp-up is in it for its first 30 "+
							"minutes; a slope that stays is a leak.",
						`instance:backend_rss_bytes:slope30m_per_hour{instance=~"$instance"}`, "{{instance}}"),
				},
				{
					graph("File descriptors", count,
						"Open file descriptors, and those beyond one per stream. If the second line rises, descriptors leak.",
						`process_open_fds`+ofBackend, "open {{instance}}",
						`process_open_fds`+ofBackend+` - on (instance) backend_streams_open{instance=~"$instance"}`, "beside streams {{instance}}"),
					graph("Restarts", count,
						"Changes of the process's start time within the last minute.",
						`changes(process_start_time_seconds`+ofBackend+`[1m])`, "{{instance}}").badFrom(1),
				},
			}},
			{Title: "nginx", lines: []line{
				{
					graph("Connections of nginx by state", count,
						"Active is all. An open stream counts as writing, a kept-alive connection without a request as waiting; reading is a request's head under way.",
						`sum(nginx_connections_active)`, "active",
						`sum(nginx_connections_reading)`, "reading",
						`sum(nginx_connections_writing)`, "writing",
						`sum(nginx_connections_waiting)`, "waiting"),
				},
			}},
		},
	}
}
