package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// What several panels ask for. The client's side is what k6 writes remotely, summed over all
// runners of the run: each of them must carry a tag of its own, or their counters overwrite
// each other (docs/dashboards.md).
const (
	opened      = `sum(k6_sse_connection_opened_total{testid="$testid"})`
	clientOpen  = `sum(testid:k6_streams:held{testid="$testid"})`
	serverOpen  = `sum(backend_streams_open{instance=~"$instance"})`
	plannedAll  = `max(k6_soak_streams_planned{testid="$testid"})` // each runner tells the whole plan
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
			"The runners tell every 5 s what their ledgers say; results/TESTID/verdict.json decides.",
		Variables: []Variable{testID, instanceOf("backend_streams_open", "backends of the run")},
		Rows: []Row{
			{Title: "Criteria, as far as Prometheus sees them (verdict.json decides)", Panels: append(connectionCriteria(), noopCriteria()...)},
			{Title: "Streams", Panels: soakStreams()},
			{Title: "Noops", Panels: soakNoops()},
			{Title: "The backend in this run", Panels: soakBackend()},
		},
	}
}

func soakStreams() []Panel {
	return []Panel{
		{
			Title: "Planned and open streams", Width: 12, Unit: units.Short,
			About: "Planned is what the runners were told. Client is opened minus closed from k6, server is what the backend holds. A lasting " +
				"gap between the two is a half-open stream: one side believes in a connection that the other lost.",
			Queries: []Query{
				{plannedAll, "planned"},
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
			Title: "Noops per second", Width: 8, Unit: units.EventsPerSecond,
			About: "Over one minute. Expected is the streams that the backend holds, divided by its noop interval; " +
				"sent is the backend's counter, received the ledgers'. The three lie on each other while streams are held.",
			Queries: []Query{
				{`sum(avg_over_time(backend_streams_open{instance=~"$instance"}` + noopsWindow + `)) / max(backend_noop_interval_seconds{instance=~"$instance"})`, "expected"},
				{`sum(instance:backend_noops:rate1m{instance=~"$instance"})`, "sent"},
				{`sum(testid:soak_noops:rate1m{testid="$testid"})`, "received"},
			},
		},
		{
			Title: "Noops in all", Width: 8, Unit: units.Short,
			About: "Expected and received are counts of the ledgers, and differ by what was missed or corrupted. Sent is what the " +
				"backend handed to the kernel since the left edge of the dashboard, messages included. " + onlyThisRun,
			Queries: []Query{
				{`sum(k6_soak_noops_expected{testid="$testid"})`, "expected"},
				{`sum(k6_soak_noops_total{testid="$testid"})`, "received"},
				{sentSince, "sent"},
			},
		},
		{
			Title: "Missed and faulty noops", Width: 8, Unit: units.Short, Limit: atMost(1),
			About: "From the ledgers, in all: where a line rises is when the first of them was noticed. Which stream missed which " +
				"noop is in connections.csv. A hole that a noop which was overtaken fills again goes from missed to overtaken.",
			Queries: []Query{
				{`sum(testid:soak_noops:missed{testid="$testid"})`, "missed"},
				{`sum(k6_soak_noops_duplicated{testid="$testid"})`, "came again"},
				{`sum(k6_soak_noops_reordered{testid="$testid"})`, "overtaken"},
				{`sum(k6_soak_noops_corrupted{testid="$testid"})`, "corrupted"},
			},
		},
		{
			Title: "Lateness", Width: 8, Unit: units.Seconds, Limit: atMost(1),
			About: "By how much noops came after their interval, as the clients measured it: of the noops of the last seconds, " +
				"by the worst runner. The line is LATE_MS by default.",
			Queries: []Query{
				{`max(k6_soak_lateness_p50_seconds{testid="$testid"})`, "p50"},
				{`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99"},
				{`max(k6_soak_lateness_max_seconds{testid="$testid"})`, "max"},
			},
		},
		{
			Title: "Lateness, the server's share", Width: 8, Unit: units.Seconds, Limit: atMost(1),
			About: "From the backend: how long it takes to write one noop to all streams that are due, over one minute. A noop is " +
				"late by up to this much before it leaves. Low, where clients see much: the network, or the runners themselves.",
			Queries: []Query{
				{`histogram_quantile(0.5, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}` + noopsWindow + `)))`, "p50"},
				{`histogram_quantile(0.99, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}` + noopsWindow + `)))`, "p99"},
			},
		},
		{
			Title: "Sent, not received, over time", Width: 8, Unit: units.Short, Limit: atMost(1),
			About: "The backend's count minus k6's. A comb of one noop per stream is the different times at which the counters are " +
				"read; a level that stays up is loss that the server does not know of. " + onlyThisRun,
			Queries: []Query{{sentSince + ` - ` + receivedSince, "missing"}},
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
