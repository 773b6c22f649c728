package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// What several panels ask for. The client's side is what k6 writes remotely, summed over all
// runners of the run: each of them must carry a tag of its own, or their counters overwrite
// each other (docs/stack.md).
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

// counted is a count of the ledgers: of noops, or of the messages of a described service. A run has one of them.
func counted(what string) string {
	return `(k6_soak_noops` + what + `{testid="$testid"} or k6_soak_messages` + what + `{testid="$testid"})`
}

var faulty = counted("_duplicated") + ` + ` + counted("_reordered") + ` + ` + counted("_corrupted")

func soak() Board {
	return Board{
		Name: "soak", Title: "Soak: the run",
		About: "One run: streams planned and held, noops sent and received, what the backend took for it. " +
			"The runners tell every 5 s what their ledgers say; results/TESTID/verdict.json decides.",
		Variables: []Variable{testID, instanceOf("backend_streams_open", "backends of the run")},
		Rows: []Row{
			{"Criteria, as far as Prometheus sees them (verdict.json decides)", []line{
				{
					number("Streams held", count,
						"Streams open now, from k6: opened minus closed. While the run holds, this is the plan.",
						clientOpen, "held"),
					number("Opened, of planned", units.PercentUnit,
						"Streams opened so far, from k6, as a share of the plan. In verdict.json: connections opened. Clients that reconnect open more.",
						opened+` / `+plannedAll, "opened").badBelow(1).ofWhole(),
					number("Refused", count,
						"Connections that never became a stream, from the ledgers. One is enough to fail the run. The panel Ended by cause says why.",
						`sum(k6_soak_streams_refused{testid="$testid"})`, "refused").badFrom(1),
					number("Lost", count,
						"Streams that ended before anyone asked, from the ledgers, whatever ended them; with RECONNECT=1 those that went on are among them.",
						`sum(testid:soak_streams:lost{testid="$testid"})`, "lost").badFrom(1),
					number("Ended when asked, of planned", units.PercentUnit,
						"Streams that were held to the end and then ended by the server, as a share of the plan, from the ledgers. In verdict.json: connections held to "+
							"the end. It is 0 until the last seconds of the run and then 100 %.",
						`sum(k6_soak_streams_completed{testid="$testid"}) / `+plannedAll, "completed").ofWhole(),
					number("Checks passed", units.PercentUnit,
						"The worst of the three checks of connectionTest.js, from k6; they run when a stream ends, so there is nothing before the end of the run. "+
							"`Received all messages` is the ledger's own word.",
						`min(k6_checks_rate{testid="$testid"})`, "passed").badBelow(1).ofWhole(),
				},
				{
					number("Missed", count,
						"Noops owed, by number or by clock, that did not come, or messages that were skipped, from the ledgers: exact to the single one. What a silent "+
							"stream owes is known when it speaks again or ends; what was published to it last, in verdict.json.",
						`sum(testid:soak_noops:missed{testid="$testid"})`, "missed").badFrom(1),
					number("Doubled, overtaken, corrupted", count,
						"Noops or messages that came again, after a later one, or as something else, from the ledgers. Each fails the run.",
						`sum(`+faulty+`)`, "faulty").badFrom(1),
					number("Late", count,
						"Noops that came more than LATE_MS (1 s by default) after their interval, messages that came so long after they were sent, from the ledgers, in "+
							"all. They fail the run only where MAX_LATE says so.",
						`sum(k6_soak_noops_late_total{testid="$testid"})`, "late"),
					number("Lateness now, p99", units.Seconds,
						"By how much the latest noops came after their interval, or messages after they were sent, from the ledgers: the p99 of the last seconds in "+
							"which any came, of the worst runner.",
						`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99").badFrom(1),
					number("Sent, not received", count,
						"Noops and messages sent, by the backend's own count, minus events that k6 received, since the left edge of the dashboard. While noops flow it swings "+
							"by up to one noop per stream, because the two counters are read at different times. What is left 10 s after the end is loss. Below 0: the backend "+
							"was restarted, or another client received. "+onlyThisRun,
						sentSince+` - `+receivedSince, "missing").badFrom(1),
					number("Restarts of the backend", count,
						"How often the start time of the backend's process changed since the left edge of the dashboard. A restart disconnects every client.",
						`sum(changes(process_start_time_seconds{job="backend",instance=~"$instance"}[$__range]))`, "restarts").badFrom(1),
				},
			}},
			{"Streams", []line{
				{
					graph("Planned and open streams", count,
						"Planned is what the runners were told. Client is opened minus closed from k6, server is what the backend holds. A lasting gap between the two is "+
							"a half-open stream: one side believes in a connection that the other lost.",
						plannedAll, "planned",
						clientOpen, "open at the client",
						serverOpen, "open at the server"),
					graph("Time to connect", units.Seconds,
						"From k6: dial begun to headers complete, of the worst runner, over all streams of the run so far. 1, 2 or 3 s are SYN retransmits of an "+
							"overflowing accept queue: see the host's listen overflows.",
						`max(k6_sse_connecting_p50{testid="$testid"})`, "p50",
						`max(k6_sse_connecting_p99{testid="$testid"})`, "p99",
						`max(k6_sse_connecting_max{testid="$testid"})`, "max").badFrom(1),
				},
				{
					graph("Ended by cause, client", count,
						"From k6, in all since the run began: attempts and streams that ended, by reason as in load-tests/types/sse.d.ts. A clean run has `server` only, "+
							"and only at its end.",
						`sum by (reason) (k6_sse_connection_closed_total{testid="$testid"})`, "{{reason}}"),
					graph("Ended by cause, server", count,
						"From the backend, since the left edge of the dashboard: streams that ended, by its reason. `forcedisconnect` is the DELETE of a clean run; "+
							"`client` a client that went, `slow` one that did not read, `error` a broken connection. "+onlyThisRun,
						`sum by (reason) (backend_streams_closed_total{instance=~"$instance"}`+` - (backend_streams_closed_total{instance=~"$instance"} @ start() or backend_streams_closed_total{instance=~"$instance"} * 0))`, "{{reason}}"),
				},
			}},
			{"Messages: noops, or those of a described service", []line{
				{
					graph("Messages per second", eventsPerSecond,
						"Over one minute. Expected is the streams that the backend holds, divided by its noop interval; sent is the backend's counter, received the "+
							"ledgers'; of a described service there is only this. The three lie on each other while streams are held.",
						`sum(avg_over_time(backend_streams_open{instance=~"$instance"}`+noopsWindow+`)) / max(backend_noop_interval_seconds{instance=~"$instance"})`, "expected",
						`sum(instance:backend_noops:rate1m{instance=~"$instance"})`, "sent",
						`sum(testid:soak_noops:rate1m{testid="$testid"})`, "received"),
					graph("Messages in all", count,
						"Expected and received are counts of the ledgers, and differ by what was missed or corrupted. Sent is what the backend handed to the kernel since "+
							"the left edge of the dashboard, messages included. "+onlyThisRun,
						`sum(`+counted("_expected")+`)`, "expected",
						`sum(`+counted("_total")+`)`, "received",
						sentSince, "sent"),
					graph("Missed and faulty messages", count,
						"From the ledgers, in all: where a line rises is when the first of them was noticed. Which stream missed which is in connections.csv. A hole "+
							"that a noop which was overtaken fills again goes from missed to overtaken.",
						`sum(testid:soak_noops:missed{testid="$testid"})`, "missed",
						`sum(`+counted("_duplicated")+`)`, "came again",
						`sum(`+counted("_reordered")+`)`, "overtaken",
						`sum(`+counted("_corrupted")+`)`, "corrupted").badFrom(1),
				},
				{
					graph("Lateness", units.Seconds,
						"By how much noops came after their interval, or messages after they were sent, as the clients measured it: of those of the last seconds, by the "+
							"worst runner. The line is LATE_MS by default.",
						`max(k6_soak_lateness_p50_seconds{testid="$testid"})`, "p50",
						`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99",
						`max(k6_soak_lateness_max_seconds{testid="$testid"})`, "max").badFrom(1),
					graph("Lateness, the server's share", units.Seconds,
						"From the backend: how long it takes to write one noop to all streams that are due, over one minute. A noop is late by up to this much before it "+
							"leaves. Low, where clients see much: the network, or the runners themselves.",
						`histogram_quantile(0.5, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}`+noopsWindow+`)))`, "p50",
						`histogram_quantile(0.99, sum by (le) (rate(backend_broadcast_duration_seconds_bucket{instance=~"$instance"}`+noopsWindow+`)))`, "p99").badFrom(1),
					graph("Sent, not received, over time", count,
						"The backend's count minus k6's. A comb of one noop per stream is the different times at which the counters are read; a level that stays up is "+
							"loss that the server does not know of. "+onlyThisRun,
						sentSince+` - `+receivedSince, "missing").badFrom(1),
				},
				{
					heat("Lateness of all messages", eventsPerSecond,
						"From the ledgers of all runners, added up: how many messages per second came how late. Noops after their interval, messages after they were "+
							"sent. A second band above the first: some of the streams are late all the time. A column that reaches up: all were late at that moment.",
						`sum by (le) (rate(k6_soak_lateness_bucket_total{testid="$testid"}[$__rate_interval]))`),
				},
			}},
			{"The publisher, where a described service is published to", []line{
				{
					graph("Published and confirmed", count,
						"From the runner that publishes, in all: messages it sent, and what of these the service confirmed. A gap that stays is refused, or without an "+
							"answer: report.md says which and why. Each confirmed message is owed to every stream of its topic.",
						`sum(k6_soak_published_total{testid="$testid"})`, "sent",
						`sum(k6_soak_confirmed_total{testid="$testid"})`, "confirmed"),
					graph("Published per second", eventsPerSecond,
						"From the runner that publishes, over one minute: PUBLISH_RATE, while it keeps up.",
						`sum(rate(k6_soak_published_total{testid="$testid"}`+noopsWindow+`))`, "sent"),
					graph("Heartbeats per second", eventsPerSecond,
						"From the ledgers, over one minute: what keeps streams of a described service alive, and is no message.",
						`sum(rate(k6_soak_heartbeats_total{testid="$testid"}`+noopsWindow+`))`, "heartbeats"),
				},
			}},
			{"The backend in this run", []line{
				{
					graph("CPU of the backend", units.PercentUnit,
						"From the backend's process: 100 % is one core. Noops at the same instant make short peaks that a minute's mean flattens.",
						`instance:backend_cpu_seconds:rate1m{instance=~"$instance"}`, "{{instance}}"),
					graph("Memory of the backend", units.BytesIEC,
						"From the backend's process: resident set, and the heap that Go uses of it. It should be flat while streams are held; the dashboard of the backend "+
							"shows the slope.",
						`sum by (instance) (`+backendRSS+`)`, "resident {{instance}}",
						`sum by (instance) (go_memstats_heap_inuse_bytes{job="backend",instance=~"$instance"})`, "heap {{instance}}"),
					graph("Memory per stream", units.BytesIEC,
						"Resident set of the backend divided by the streams it holds. The process itself is in it, so few streams look dear; compare runs of the same size.",
						`sum(`+backendRSS+`) / (sum(backend_streams_open{instance=~"$instance"}) > 0)`, "per stream"),
				},
			}},
		},
	}
}
