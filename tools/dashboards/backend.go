package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// ofBackend selects what the backend's process says of itself.
const ofBackend = `{job="backend",instance=~"$instance"}`

func backend() Board {
	return Board{
		Name:  "backend",
		Title: "Soak: the backend",
		About: "The SSE service from the inside, as its /metrics tells. The figures that show a leak, a stall or a limit.",
		Variables: []Variable{
			instanceOf("backend_streams_open", "processes of the backend"),
		},
		Rows: []Row{
			{Title: "Now", Panels: backendNow()},
			{Title: "Streams", Panels: backendStreams()},
			{Title: "Sending", Panels: backendSending()},
			{Title: "Memory", Panels: backendMemory()},
			{Title: "Runtime", Panels: backendRuntime()},
		},
	}
}

func backendNow() []Panel {
	return []Panel{
		{
			Title: "Up", Number: true, Width: 4, Unit: units.Short, Limit: atLeast(1),
			About:   "Targets of the job backend that Prometheus reaches, the fewest of all it knows. 0: one is down, or its /metrics needs a token.",
			Queries: []Query{{`min(up` + ofBackend + `)`, "up"}},
		},
		{
			Title: "Running for", Number: true, Width: 4, Unit: units.Seconds,
			About:   "Since the latest start of any of them. Shorter than the run: it was restarted.",
			Queries: []Query{{`time() - max(process_start_time_seconds` + ofBackend + `)`, "running"}},
		},
		{
			Title: "Streams open", Number: true, Width: 4, Unit: units.Short,
			About:   "Event streams that the backend holds.",
			Queries: []Query{{`sum(backend_streams_open{instance=~"$instance"})`, "open"}},
		},
		{
			Title: "Room for streams", Number: true, Width: 4, Unit: units.PercentUnit, Limit: atMost(.9),
			About:   "Open streams as a share of MAX_CONNECTIONS. At 100 % further clients are refused with 503.",
			Queries: []Query{{`max(backend_streams_open{instance=~"$instance"} / backend_max_connections{instance=~"$instance"})`, "used"}},
		},
		{
			Title: "Descriptors used", Number: true, Width: 4, Unit: units.PercentUnit, Limit: atMost(.8),
			About:   "Open file descriptors as a share of the process's limit (ulimit -n). Each stream takes one.",
			Queries: []Query{{`max(instance:backend_fds:ratio{instance=~"$instance"})`, "used"}},
		},
		{
			Title: "Noop interval", Number: true, Width: 4, Unit: units.Seconds,
			About:   "NOOP_INTERVAL of the backend. It has to be that of the run, or the run counts what was never owed.",
			Queries: []Query{{`max(backend_noop_interval_seconds{instance=~"$instance"})`, "interval"}},
		},
	}
}

func backendStreams() []Panel {
	return []Panel{
		{
			Title: "Streams by process", Width: 8, Unit: units.Short,
			About:   "Event streams that each process holds. A step down is a mass disconnect, a slow decline streams that die unseen.",
			Queries: []Query{{`backend_streams_open{instance=~"$instance"}`, "{{instance}}"}},
		},
		{
			Title: "Opened per second", Width: 8, Unit: units.CountsPerSecond,
			About: "Streams opened, and of them those that went on by Last-Event-ID. Opening while a run holds means clients reconnect.",
			Queries: []Query{
				{`sum(rate(backend_streams_opened_total{instance=~"$instance"}[$__rate_interval]))`, "opened"},
				{`sum(rate(backend_resumed_total{instance=~"$instance"}[$__rate_interval]))`, "resumed"},
			},
		},
		{
			Title: "Closed per second, by reason", Width: 8, Unit: units.CountsPerSecond, Stacked: true,
			About: "Over the last seconds: `forcedisconnect` is the DELETE; `client` a client that went; `slow` one that did not read; `replaced` a " +
				"resumed stream; `drain` the end of the service; `error` a broken connection; `fault` was injected.",
			Queries: []Query{{`sum by (reason) (rate(backend_streams_closed_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}"}},
		},
		{
			Title: "Refused per second, by reason", Width: 8, Unit: units.CountsPerSecond, Stacked: true,
			About:   "Connects that were answered with an error: `full` is MAX_CONNECTIONS, `descriptor` ulimit -n, `duplicate` an id whose stream is still open.",
			Queries: []Query{{`sum by (reason) (rate(backend_refused_total{instance=~"$instance"}[$__rate_interval]))`, "{{reason}}"}},
		},
		{
			Title: "Ids", Width: 8, Unit: units.Short,
			About: "Ids in the ledger, and of them those without a stream whose numbering waits for a resume. The ledger grows " +
				"with ids, not with time, up to LEDGER_KEEP closed ones.",
			Queries: []Query{
				{`sum(backend_ledger_entries{instance=~"$instance"})`, "in the ledger"},
				{`sum(backend_held_ids{instance=~"$instance"})`, "held for a resume"},
			},
		},
		{
			Title: "File descriptors", Width: 8, Unit: units.Short,
			About: "Open file descriptors, and those beyond one per stream. If the second line rises, descriptors leak.",
			Queries: []Query{
				{`process_open_fds` + ofBackend, "open {{instance}}"},
				{`process_open_fds` + ofBackend + ` - on (instance) backend_streams_open{instance=~"$instance"}`, "beside streams {{instance}}"},
			},
		},
	}
}

func backendSending() []Panel {
	return []Panel{
		{
			Title: "Noops and messages per second", Width: 8, Unit: units.EventsPerSecond,
			About: "Handed to the kernel, over one minute. Expected is streams divided by the noop interval.",
			Queries: []Query{
				{`sum(instance:backend_noops:rate1m{instance=~"$instance"})`, "noops"},
				{`sum(avg_over_time(backend_streams_open{instance=~"$instance"}` + noopsWindow + `)) / max(backend_noop_interval_seconds{instance=~"$instance"})`, "noops expected"},
				{`sum(rate(backend_messages_sent_total{instance=~"$instance"}` + noopsWindow + `))`, "messages"},
				{`sum(rate(backend_replayed_total{instance=~"$instance"}` + noopsWindow + `))`, "replayed"},
			},
		},
		{
			Title: "Time of one broadcast", Width: 8, Unit: units.Seconds, Limit: atMost(1),
			About: "How long it takes to write one noop or message to all streams that are due, over one minute, from a " +
				"histogram: figures between two bounds of it are interpolated. The last stream gets its noop this late.",
			Queries: []Query{
				{`histogram_quantile(0.5, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}` + noopsWindow + `)))`, "p50"},
				{`histogram_quantile(0.99, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}` + noopsWindow + `)))`, "p99"},
				{`sum(rate(backend_broadcast_duration_seconds_sum{instance=~"$instance"}` + noopsWindow + `)) / (sum(rate(backend_broadcast_duration_seconds_count{instance=~"$instance"}` + noopsWindow + `)) > 0)`, "mean"},
			},
		},
		{
			Title: "Slow clients and failed writes", Width: 8, Unit: units.CountsPerSecond,
			About: "Streams cut off because the client did not read, and writes that failed. Both are 0 in a clean run.",
			Queries: []Query{
				{`sum(rate(backend_slow_consumers_total{instance=~"$instance"}[$__rate_interval]))`, "slow clients cut off"},
				{`sum(rate(backend_send_errors_total{instance=~"$instance"}[$__rate_interval]))`, "failed writes"},
			},
		},
	}
}

func backendMemory() []Panel {
	return []Panel{
		{
			Title: "Memory", Width: 8, Unit: units.BytesIEC,
			About: "Resident set of the process; the heap that Go uses of it; and what Go holds of the kernel without using it.",
			Queries: []Query{
				{backendRSS, "resident {{instance}}"},
				{`go_memstats_heap_inuse_bytes` + ofBackend, "heap in use {{instance}}"},
				{`go_memstats_heap_idle_bytes` + ofBackend + ` - go_memstats_heap_released_bytes` + ofBackend, "heap kept {{instance}}"},
			},
		},
		{
			Title: "Memory per stream", Width: 8, Unit: units.BytesIEC,
			About:   "Resident set divided by open streams; only where there are streams. The bare process is in it.",
			Queries: []Query{{`instance:backend_rss_bytes:per_stream{instance=~"$instance"}`, "{{instance}}"}},
		},
		{
			Title: "Growth of memory per hour", Width: 8, Unit: units.BytesSI,
			About: "Slope of the resident set over 30 minutes, in bytes per hour. While streams are held it should be about 0. " +
				"The ramp-up is in it for its first 30 minutes; a slope that stays is a leak.",
			Queries: []Query{{`instance:backend_rss_bytes:slope30m_per_hour{instance=~"$instance"}`, "{{instance}}"}},
		},
	}
}

func backendRuntime() []Panel {
	return []Panel{
		{
			Title: "CPU", Width: 8, Unit: units.PercentUnit,
			About:   "Of one core, over one minute.",
			Queries: []Query{{`instance:backend_cpu_seconds:rate1m{instance=~"$instance"}`, "{{instance}}"}},
		},
		{
			Title: "Goroutines and threads", Width: 8, Unit: units.Short,
			About: "The backend keeps no goroutine per idle stream: a number that follows the streams is a bug.",
			Queries: []Query{
				{`go_goroutines` + ofBackend, "goroutines {{instance}}"},
				{`go_threads` + ofBackend, "threads {{instance}}"},
			},
		},
		{
			Title: "Longest GC pause", Width: 8, Unit: units.Seconds, Limit: atMost(.1),
			// Prometheus 3, and 2 where it scrapes protobuf, store the quantile as 1.0.
			About:   "The longest pause of the garbage collector among its latest. Nothing is sent during one.",
			Queries: []Query{{`go_gc_duration_seconds{job="backend",instance=~"$instance",quantile=~"1|1.0"}`, "{{instance}}"}},
		},
		{
			Title: "GC runs per second", Width: 8, Unit: units.OpsPerSecond,
			About:   "Collections of garbage, over one minute. The runtime forces one every two minutes.",
			Queries: []Query{{`rate(go_gc_duration_seconds_count` + ofBackend + noopsWindow + `)`, "{{instance}}"}},
		},
		{
			Title: "Bytes allocated per second", Width: 8, Unit: units.BytesPerSecondSI,
			About:   "Memory that Go code asked for, over one minute. Sending a noop allocates nothing; requests and scrapes do.",
			Queries: []Query{{`rate(go_memstats_alloc_bytes_total` + ofBackend + noopsWindow + `)`, "{{instance}}"}},
		},
		{
			Title: "Restarts", Width: 8, Unit: units.Short, Limit: atMost(1),
			About:   "Changes of the process's start time within the last minute.",
			Queries: []Query{{`changes(process_start_time_seconds` + ofBackend + `[1m])`, "{{instance}}"}},
		},
	}
}
