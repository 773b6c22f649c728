package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// ofBackend selects what the backend's process says of itself.
const ofBackend = `{job="backend",instance=~"$instance"}`

func backend() Board {
	return Board{
		Name: "backend", Title: "Soak: the backend",
		About:     "The SSE service from the inside, as its /metrics tells. The figures that show a leak, a stall or a limit.",
		Variables: []Variable{instanceOf("backend_streams_open", "processes of the backend")},
		Rows: []Row{
			{"Now", []line{
				{
					number("Up", count,
						"Targets of the job backend that Prometheus reaches, the fewest of all it knows. 0: one is down, or its /metrics needs a token.",
						`min(up`+ofBackend+`)`, "up").badBelow(1),
					number("Running for", units.Seconds,
						"Since the latest start of any of them. Shorter than the run: it was restarted.",
						`time() - max(process_start_time_seconds`+ofBackend+`)`, "running"),
					number("Streams open", count,
						"Event streams that the backend holds.",
						`sum(backend_streams_open{instance=~"$instance"})`, "open"),
					number("Room for streams", units.PercentUnit,
						"Open streams as a share of MAX_CONNECTIONS. At 100 % further clients are refused with 503.",
						`max(backend_streams_open{instance=~"$instance"} / backend_max_connections{instance=~"$instance"})`, "used").badFrom(.9),
					number("Descriptors used", units.PercentUnit,
						"Open file descriptors as a share of the process's limit (ulimit -n). Each stream takes one.",
						`max(instance:backend_fds:ratio{instance=~"$instance"})`, "used").badFrom(.8),
					number("Noop interval", units.Seconds,
						"NOOP_INTERVAL of the backend. It has to be that of the run, or the run counts what was never owed.",
						`max(backend_noop_interval_seconds{instance=~"$instance"})`, "interval"),
				},
			}},
			{"Streams", []line{
				{
					graph("Streams by process", count,
						"Event streams that each process holds. A step down is a mass disconnect, a slow decline streams that die unseen.",
						`backend_streams_open{instance=~"$instance"}`, "{{instance}}"),
					graph("Opened per second", countsPerSecond,
						"Streams opened, and of them those that went on by Last-Event-ID. Opening while a run holds means clients reconnect.",
						`sum(rate(backend_streams_opened_total{instance=~"$instance"}[$__rate_interval]))`, "opened",
						`sum(rate(backend_resumed_total{instance=~"$instance"}[$__rate_interval]))`, "resumed"),
					graph("Closed per second, by reason", countsPerSecond,
						"Over the last seconds: `forcedisconnect` is the DELETE; `client` a client that went; `slow` one that did not read; `replaced` a resumed stream; "+
							"`drain` the end of the service; `error` a broken connection; `fault` was injected.",
						`sum by (reason) (rate(backend_streams_closed_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}").stacked(),
				},
				{
					graph("Refused per second, by reason", countsPerSecond,
						"Connects that were answered with an error: `full` is MAX_CONNECTIONS, `descriptor` ulimit -n, `duplicate` an id whose stream is still open.",
						`sum by (reason) (rate(backend_refused_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}").stacked(),
					graph("Ids", count,
						"Ids in the ledger, and of them those without a stream whose numbering waits for a resume. The ledger grows with ids, not with time, up to "+
							"LEDGER_KEEP closed ones.",
						`sum(backend_ledger_entries{instance=~"$instance"})`, "in the ledger",
						`sum(backend_held_ids{instance=~"$instance"})`, "held for a resume"),
					graph("File descriptors", count,
						"Open file descriptors, and those beyond one per stream. If the second line rises, descriptors leak.",
						`process_open_fds`+ofBackend, "open {{instance}}",
						`process_open_fds`+ofBackend+` - on (instance) backend_streams_open{instance=~"$instance"}`, "beside streams {{instance}}"),
				},
			}},
			{"Sending", []line{
				{
					graph("Noops and messages per second", eventsPerSecond,
						"Handed to the kernel, over one minute. Expected is streams divided by the noop interval.",
						`sum(instance:backend_noops:rate1m{instance=~"$instance"})`, "noops",
						`sum(avg_over_time(backend_streams_open{instance=~"$instance"}`+noopsWindow+`)) / max(backend_noop_interval_seconds{instance=~"$instance"})`, "noops expected",
						`sum(rate(backend_messages_sent_total{instance=~"$instance"}`+noopsWindow+`))`, "messages",
						`sum(rate(backend_replayed_total{instance=~"$instance"}`+noopsWindow+`))`, "replayed"),
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
			{"Memory", []line{
				{
					graph("Memory", units.BytesIEC,
						"Resident set of the process; the heap that Go uses of it; and what Go holds of the kernel without using it.",
						backendRSS, "resident {{instance}}",
						`go_memstats_heap_inuse_bytes`+ofBackend, "heap in use {{instance}}",
						`go_memstats_heap_idle_bytes`+ofBackend+` - go_memstats_heap_released_bytes`+ofBackend, "heap kept {{instance}}"),
					graph("Memory per stream", units.BytesIEC,
						"Resident set divided by open streams; only where there are streams. The bare process is in it.",
						`instance:backend_rss_bytes:per_stream{instance=~"$instance"}`, "{{instance}}"),
					graph("Growth of memory per hour", units.BytesSI,
						"Slope of the resident set over 30 minutes, in bytes per hour. While streams are held it should be about 0. The ramp-up is in it for its first 30 "+
							"minutes; a slope that stays is a leak.",
						`instance:backend_rss_bytes:slope30m_per_hour{instance=~"$instance"}`, "{{instance}}"),
				},
			}},
			{"Runtime", []line{
				{
					graph("CPU", units.PercentUnit,
						"Of one core, over one minute.",
						`instance:backend_cpu_seconds:rate1m{instance=~"$instance"}`, "{{instance}}"),
					graph("Goroutines and threads", count,
						"The backend keeps no goroutine per idle stream: a number that follows the streams is a bug.",
						`go_goroutines`+ofBackend, "goroutines {{instance}}",
						`go_threads`+ofBackend, "threads {{instance}}"),
					// Prometheus 3, and 2 where it scrapes protobuf, store the quantile as 1.0.
					graph("Longest GC pause", units.Seconds,
						"The longest pause of the garbage collector among its latest. Nothing is sent during one.",
						`go_gc_duration_seconds{job="backend",instance=~"$instance",quantile=~"1|1.0"}`, "{{instance}}").badFrom(.1),
				},
				{
					graph("GC runs per second", timesPerSecond,
						"Collections of garbage, over one minute. The runtime forces one every two minutes.",
						`rate(go_gc_duration_seconds_count`+ofBackend+noopsWindow+`)`, "{{instance}}"),
					graph("Bytes allocated per second", units.BytesPerSecondSI,
						"Memory that Go code asked for, over one minute. Sending a noop allocates nothing; requests and scrapes do.",
						`rate(go_memstats_alloc_bytes_total`+ofBackend+noopsWindow+`)`, "{{instance}}"),
					graph("Restarts", count,
						"Changes of the process's start time within the last minute.",
						`changes(process_start_time_seconds`+ofBackend+`[1m])`, "{{instance}}").badFrom(1),
				},
			}},
		},
	}
}
