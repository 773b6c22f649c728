package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// ofRun selects the run; byRunner tells its runners apart by the tag that each must carry:
// `runner` by hand, `instance_id` from the k6-operator.
const (
	ofRun    = `{testid="$testid"}`
	byRunner = `sum by (runner, instance_id) `
	runner   = "runner {{runner}}{{instance_id}}"
)

func k6() Board {
	return Board{
		Name:  "k6",
		Title: "Soak: the generators",
		About: "The k6 runners: what they did, and whether they were able to. A starved generator must not be read as a late server.",
		Variables: []Variable{
			testID,
			instanceOf("node_uname_info", "machines that the runners are on"),
		},
		Rows: []Row{
			{Title: "The run", Panels: k6Run()},
			{Title: "The runners themselves", Panels: k6Process()},
			{Title: "Streams", Panels: k6Streams()},
			{Title: "Requests", Panels: k6Requests()},
			{Title: "The machine of the generators", Panels: k6Machine()},
		},
	}
}

func k6Run() []Panel {
	return []Panel{
		{
			Title: "Virtual users", Width: 8, Unit: units.Short,
			About: "Virtual users that run and those set up, by runner. In a soak each holds its streams in one iteration from " +
				"beginning to end. k6's own sample of k6_vus comes once a second.",
			Queries: []Query{
				{byRunner + `(k6_vus` + ofRun + `)`, "active, " + runner},
				{byRunner + `(k6_vus_max` + ofRun + `)`, "set up, " + runner},
			},
		},
		{
			Title: "Streams by runner", Width: 8, Unit: units.Short,
			About: "Opened minus closed, by runner. Shares follow from the execution segments and are equal to one.",
			Queries: []Query{{byRunner + `(k6_sse_connection_opened_total` + ofRun + `) - (` +
				byRunner + `(k6_sse_connection_closed_total{testid="$testid",opened="true"}) or ` +
				byRunner + `(k6_sse_connection_opened_total` + ofRun + `) * 0)`, runner}},
		},
		{
			Title: "Iterations ended", Width: 8, Unit: units.Short,
			About:   "Iterations that are over, by runner, in all. In a soak all end at the end; one before is a stream that broke.",
			Queries: []Query{{byRunner + `(k6_iterations_total` + ofRun + `)`, runner}},
		},
	}
}

func k6Process() []Panel {
	return []Panel{
		{
			Title: "CPU of the runners", Width: 8, Unit: units.PercentUnit,
			About: "Of one core, by runner, over 5 s. k6 runs on all cores, so it may be over 100 %; near all cores of its machine it " +
				"reads noops late that came in time.",
			Queries: []Query{{byRunner + `(k6_soak_cpu_percent` + ofRun + `) / 100`, runner}},
		},
		{
			Title: "Memory of the runners", Width: 8, Unit: units.BytesIEC,
			About:   "Resident set of the process, by runner. It should be flat while streams are held: the ledgers grow with streams, not with time.",
			Queries: []Query{{byRunner + `(k6_soak_rss_bytes` + ofRun + `)`, runner}},
		},
		{
			Title: "Lateness by runner", Width: 8, Unit: units.Seconds, Limit: atMost(1),
			About: "The p99 of the noops of the last seconds, by runner. One runner that is late while the others are not is late by " +
				"itself: its CPU, its machine, its network.",
			Queries: []Query{{`max by (runner, instance_id) (k6_soak_lateness_p99_seconds` + ofRun + `)`, runner}},
		},
	}
}

func k6Streams() []Panel {
	return []Panel{
		{
			Title: "Events per second", Width: 8, Unit: units.EventsPerSecond,
			About:   "Events received by runner, over one minute. One line that falls while the others stay is that runner's own trouble.",
			Queries: []Query{{byRunner + `(rate(k6_sse_event_total` + ofRun + noopsWindow + `))`, runner}},
		},
		{
			Title: "Time to connect", Width: 8, Unit: units.Seconds, Limit: atMost(1),
			About: "Dial begun to headers complete, by runner, over all its streams so far. Percentiles of two runners cannot be " +
				"merged: each has its own line.",
			Queries: []Query{
				{`max by (runner, instance_id) (k6_sse_connecting_p99` + ofRun + `)`, "p99, " + runner},
				{`max by (runner, instance_id) (k6_sse_connecting_max` + ofRun + `)`, "max, " + runner},
			},
		},
		{
			Title: "Time to the first event", Width: 8, Unit: units.Seconds,
			About: "Headers complete to the first event, by runner. It lies between 0 and the noop interval where the backend sends " +
				"noops to all at once; more is a noop that never came.",
			Queries: []Query{
				{`max by (runner, instance_id) (k6_sse_first_event_p50` + ofRun + `)`, "p50, " + runner},
				{`max by (runner, instance_id) (k6_sse_first_event_max` + ofRun + `)`, "max, " + runner},
			},
		},
		{
			Title: "Ended by cause", Width: 12, Unit: units.Short,
			About:   "Streams and attempts that ended, by reason, in all; where `opened` is false it never was a stream.",
			Queries: []Query{{`sum by (reason, opened) (k6_sse_connection_closed_total` + ofRun + `)`, "{{reason}}, opened {{opened}}"}},
		},
		{
			Title: "Checks", Width: 12, Unit: units.PercentUnit, Limit: atLeast(1),
			About:   "Share of streams that passed, by check and by the worst runner; from the end of the run on.",
			Queries: []Query{{`min by (check) (k6_checks_rate` + ofRun + `)`, "{{check}}"}},
		},
	}
}

func k6Requests() []Panel {
	return []Panel{
		{
			Title: "Duration of requests", Width: 8, Unit: units.Seconds,
			About:   "The p99 of plain HTTP requests of the worst runner, by name; in a soak these are the DELETEs at the end.",
			Queries: []Query{{`max by (name) (k6_http_req_duration_p99` + ofRun + `)`, "{{name}}"}},
		},
		{
			Title: "Failed requests", Width: 8, Unit: units.PercentUnit, Limit: atMost(.001),
			About:   "Share of plain HTTP requests without a good answer, by name, of the worst runner.",
			Queries: []Query{{`max by (name) (k6_http_req_failed_rate` + ofRun + `)`, "{{name}}"}},
		},
		{
			Title: "Bytes in all", Width: 8, Unit: units.BytesSI,
			About: "What the runners received and sent, headers included. k6 tells of a stream's bytes when its iteration ends, so " +
				"in a soak there is nothing before its end.",
			Queries: []Query{
				{`sum(k6_data_received_total` + ofRun + `)`, "received"},
				{`sum(k6_data_sent_total` + ofRun + `)`, "sent"},
			},
		},
	}
}

const notTheProcess = "From node_exporter, of the whole machine; what the runners take of it is above."

func k6Machine() []Panel {
	return []Panel{
		{
			Title: "CPU of the machine", Width: 8, Unit: units.PercentUnit, Limit: atMost(.8),
			About:   "Share of all cores in use. Above 80 % noops are read late that came in time. " + notTheProcess,
			Queries: []Query{{`1 - avg by (instance) (rate(node_cpu_seconds_total{instance=~"$instance",mode="idle"}[$__rate_interval]))`, "{{instance}}"}},
		},
		{
			Title: "Memory of the machine", Width: 8, Unit: units.BytesIEC,
			About: "Memory that is not available to further programs, and all there is. " + notTheProcess,
			Queries: []Query{
				{`node_memory_MemTotal_bytes` + onHost + ` - node_memory_MemAvailable_bytes` + onHost, "in use {{instance}}"},
				{`node_memory_MemTotal_bytes` + onHost, "total {{instance}}"},
			},
		},
		{
			Title: "Waiting for CPU", Width: 8, Unit: units.PercentUnit, Limit: atMost(.2),
			About:   "Share of time in which some task waited for a core. This is what makes a generator late, and load does not show it. " + notTheProcess,
			Queries: []Query{{`rate(node_pressure_cpu_waiting_seconds_total` + onHost + `[$__rate_interval])`, "{{instance}}"}},
		},
		{
			Title: "CPU of k6 in containers", Width: 12, Unit: units.PercentUnit,
			About:   "Of one core, by container or pod of k6, from cAdvisor. Only where the runners are containers.",
			Queries: []Query{{`sum by (name, pod) (rate(container_cpu_usage_seconds_total{name=~".*k6.*"}[$__rate_interval]))`, "{{pod}}{{name}}"}},
		},
		{
			Title: "Memory of k6 in containers", Width: 12, Unit: units.BytesIEC,
			About:   "Working set by container or pod of k6, from cAdvisor. Only where the runners are containers.",
			Queries: []Query{{`sum by (name, pod) (container_memory_working_set_bytes{name=~".*k6.*"})`, "{{pod}}{{name}}"}},
		},
	}
}
