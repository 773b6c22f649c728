package build

import "github.com/grafana/grafana-foundation-sdk/go/units"

// What several panels ask for. The client's side is what k6 writes remotely, summed over all
// runners of the run: each of them must carry a tag of its own, or their counters overwrite
// each other (docs/dashboards.md).
const (
	opened      = `sum(k6_sse_connection_opened_total{testid="$testid"})`
	clientOpen  = `sum(testid:k6_streams:held{testid="$testid"})`
	serverOpen  = `sum(backend_streams_open{instance=~"$instance"})`
	received    = `sum(k6_sse_event_total{testid="$testid"})`
	sent        = `sum(backend_noops_sent_total{instance=~"$instance"} + on (job, instance) backend_messages_sent_total)`
	backendRSS  = `process_resident_memory_bytes{job="backend",instance=~"$instance"}`
	noopsWindow = `[1m]` // four noops at the default interval of 15 s: shorter windows beat with it
)

// sinceStart is how much a counter grew since the left edge of the dashboard. Unlike
// increase() it does not extrapolate: it is a count.
func sinceStart(counter, atStart string) string {
	return `(` + counter + ` - (` + atStart + ` or vector(0)))`
}

var (
	sentSince     = sinceStart(sent, `sum(backend_noops_sent_total{instance=~"$instance"} @ start() + on (job, instance) backend_messages_sent_total @ start())`)
	receivedSince = sinceStart(received, `sum(k6_sse_event_total{testid="$testid"} @ start())`)
)

const onlyThisRun = "It is right while one run loads this backend, and starts anew when the backend does."

func soak() Board {
	return Board{
		Name:  "soak",
		Title: "Soak: the run",
		About: "One run: streams planned and held, noops sent and received, what the backend took for it. " +
			"results/TESTID/verdict.json decides; this shows the hour while it happens.",
		Variables: []Variable{testID, planned, instanceOf("backend_streams_open", "backends of the run")},
		Rows: []Row{
			{Title: "Criteria, as far as Prometheus sees them (verdict.json decides)", Panels: soakCriteria()},
			{Title: "Streams", Panels: soakStreams()},
			{Title: "Noops", Panels: soakNoops()},
			{Title: "The backend in this run", Panels: soakBackend()},
		},
	}
}

func soakCriteria() []Panel {
	return []Panel{
		{
			Title: "Streams held", Number: true, Width: 6, Unit: units.Short,
			About:   "Streams open now, from k6: opened minus closed. While the run holds, this is the plan.",
			Queries: []Query{{clientOpen, "held"}},
		},
		{
			Title: "Opened, of planned", Number: true, Width: 6, Unit: units.PercentUnit, Limit: atLeast(1),
			About: "Streams opened so far, from k6, as a share of the number at the top. In verdict.json: connections opened. " +
				"Clients that reconnect open more.",
			Queries: []Query{{opened + ` / $planned`, "opened"}},
		},
		{
			Title: "Refused", Number: true, Width: 6, Unit: units.Short, Limit: atMost(1),
			About: "Attempts that never became a stream, from k6: the tag opened is false. One is enough to fail " +
				"the run unless clients reconnect. The panel Ended by cause says why.",
			Queries: []Query{{`sum(k6_sse_connection_closed_total{testid="$testid",opened="false"}) or vector(0)`, "refused"}},
		},
		{
			Title: "Broken", Number: true, Width: 6, Unit: units.Short, Limit: atMost(1),
			About: "Streams that ended by neither the server's nor the script's will, from k6: reset, truncated, " +
				"idle and so on. A stream that the server ended in order but too early is not among them: " +
				"k6's metrics do not tell early from asked for, the ledger in verdict.json does.",
			Queries: []Query{{`sum(testid:k6_streams:lost{testid="$testid"}) or vector(0)`, "broken"}},
		},
		{
			Title: "Sent, not received", Number: true, Width: 6, Unit: units.Short, Limit: atMost(1),
			About: "Noops and messages that the backend says it sent minus events that k6 received, since the left edge of the " +
				"dashboard. While noops flow it swings by up to one noop per stream, because the two counters " +
				"are read at different times. What is left 10 s after the end is loss. Below 0: the backend was " +
				"restarted, or another client received. " + onlyThisRun,
			Queries: []Query{{sentSince + ` - ` + receivedSince, "missing"}},
		},
		{
			Title: "Checks passed", Number: true, Width: 6, Unit: units.PercentUnit, Limit: atLeast(1),
			About: "The worst of the three checks of connectionTest.js, from k6; they run when a stream ends, so " +
				"there is nothing before the end of the run. `Received all messages` is the ledger's own word.",
			Queries: []Query{{`min(k6_checks_rate{testid="$testid"})`, "passed"}},
		},
		{
			Title: "Restarts of the backend", Number: true, Width: 6, Unit: units.Short, Limit: atMost(1),
			About: "How often the start time of the backend's process changed since the left edge of the " +
				"dashboard. A restart cuts every client off.",
			Queries: []Query{{`sum(changes(process_start_time_seconds{job="backend",instance=~"$instance"}[$__range]))`, "restarts"}},
		},
		{
			Title: "Noops leave within", Number: true, Width: 6, Unit: units.Seconds, Limit: atMost(1),
			About: "The p99 of the time that the backend takes to write one noop to all streams that are due, over 5 minutes, of the " +
				"slowest backend: the server's share of lateness, which the ledger has in full.",
			Queries: []Query{{`max(instance:backend_broadcast_seconds:p99_5m{instance=~"$instance"})`, "p99"}},
		},
	}
}

func soakStreams() []Panel {
	return []Panel{
		{
			Title: "Planned and open streams", Width: 12, Unit: units.Short,
			About: "Planned is the number at the top. Client is opened minus closed from k6, server is what the backend holds. A lasting " +
				"gap between the two is a half-open stream: one side believes in a connection that the other lost.",
			Queries: []Query{
				{`vector($planned)`, "planned"},
				{clientOpen, "open at the client"},
				{serverOpen, "open at the server"},
			},
		},
		{
			Title: "Time to connect", Width: 12, Unit: units.Seconds, Limit: atMost(1),
			About: "From k6: dial begun to headers complete, of the worst runner, over all streams of the run so " +
				"far. 1, 2 or 3 s are SYN retransmits of an overflowing accept queue: see the host's listen " +
				"overflows.",
			Queries: []Query{
				{`max(k6_sse_connecting_p50{testid="$testid"})`, "p50"},
				{`max(k6_sse_connecting_p99{testid="$testid"})`, "p99"},
				{`max(k6_sse_connecting_max{testid="$testid"})`, "max"},
			},
		},
		{
			Title: "Ended by cause, client", Width: 12, Unit: units.Short,
			About: "From k6, in all since the run began: attempts and streams that ended, by reason as in " +
				"load-tests/types/index.d.ts. A clean run has `server` only, and only at its end.",
			Queries: []Query{{`sum by (reason) (k6_sse_connection_closed_total{testid="$testid"})`, "{{reason}}"}},
		},
		{
			Title: "Ended by cause, server", Width: 12, Unit: units.Short,
			About: "From the backend, since the left edge of the dashboard: streams that ended, by its reason. " +
				"`forcedisconnect` is the DELETE of a clean run; `client` a client that went, `slow` one that did " +
				"not read, `error` a broken connection. " + onlyThisRun,
			Queries: []Query{{`sum by (reason) (backend_streams_closed_total{instance=~"$instance"}` +
				` - (backend_streams_closed_total{instance=~"$instance"} @ start() or backend_streams_closed_total{instance=~"$instance"} * 0))`, "{{reason}}"}},
		},
	}
}

func soakNoops() []Panel {
	return []Panel{
		{
			Title: "Noops per second", Width: 12, Unit: units.EventsPerSecond,
			About: "Over one minute. Expected is the streams that the backend holds, divided by its noop interval; " +
				"sent is the backend's counter, received is k6's. The three lie on each other while streams are held.",
			Queries: []Query{
				{`sum(avg_over_time(backend_streams_open{instance=~"$instance"}` + noopsWindow + `)) / max(backend_noop_interval_seconds{instance=~"$instance"})`, "expected"},
				{`sum(instance:backend_noops:rate1m{instance=~"$instance"})`, "sent"},
				{`sum(testid:k6_events:rate1m{testid="$testid"})`, "received"},
			},
		},
		{
			Title: "Noops in all", Width: 12, Unit: units.Short,
			About: "Counts since the left edge of the dashboard: what the backend handed to the kernel, messages included, " +
				"and what k6 received. " + onlyThisRun,
			Queries: []Query{{sentSince, "sent"}, {receivedSince, "received"}},
		},
		{
			Title: "Sent, not received, over time", Width: 12, Unit: units.Short, Limit: atMost(1),
			About: "The difference of the two lines of Noops in all. A comb of one noop per stream is the " +
				"different times at which the counters are read; a level that stays up is loss, and where it " +
				"rose is when. Which device lost which noop is in connections.csv. " + onlyThisRun,
			Queries: []Query{{sentSince + ` - ` + receivedSince, "missing"}},
		},
		{
			Title: "Lateness, the server's share", Width: 12, Unit: units.Seconds, Limit: atMost(1),
			About: "From the backend: how long it takes to write one noop to all streams that are due. A noop is " +
				"late by up to this much before it leaves. The lateness that clients see is measured in the ledger " +
				"(report.md, series.csv), not in k6's metrics. The line is LATE_MS by default.",
			Queries: []Query{
				{`histogram_quantile(0.5, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}` + noopsWindow + `)))`, "p50"},
				{`histogram_quantile(0.99, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}` + noopsWindow + `)))`, "p99"},
			},
		},
	}
}

func soakBackend() []Panel {
	return []Panel{
		{
			Title: "CPU of the backend", Width: 8, Unit: units.PercentUnit,
			About: "From the backend's process: 100 % is one core. Noops at the same instant make short peaks " +
				"that a minute's mean flattens.",
			Queries: []Query{{`instance:backend_cpu_seconds:rate1m{instance=~"$instance"}`, "{{instance}}"}},
		},
		{
			Title: "Memory of the backend", Width: 8, Unit: units.BytesIEC,
			About: "From the backend's process: resident set, and the heap that Go uses of it. It should be flat " +
				"while streams are held; the dashboard of the backend shows the slope.",
			Queries: []Query{
				{`sum by (instance) (` + backendRSS + `)`, "resident {{instance}}"},
				{`sum by (instance) (go_memstats_heap_inuse_bytes{job="backend",instance=~"$instance"})`, "heap {{instance}}"},
			},
		},
		{
			Title: "Memory per stream", Width: 8, Unit: units.BytesIEC,
			About: "Resident set of the backend divided by the streams it holds. The process itself is in it, so " +
				"few streams look dear; compare runs of the same size.",
			Queries: []Query{{`sum(` + backendRSS + `) / (sum(backend_streams_open{instance=~"$instance"}) > 0)`, "per stream"}},
		},
	}
}
