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

// ofRun selects the run; byRunner tells its runners apart by the tag that each must carry: `runner` by hand, `instance_id` from the
// k6-operator.
const (
	ofRun    = `{testid="$testid"}`
	byRunner = `sum by (runner, instance_id) `
)

const (
	// reports has the times of the reports of the run's runners.
	reports = `timestamp(k6_soak_streams_planned{testid="$testid"})[12h:30s]`
	// silent is 1 for the runners of which the alert RunnerSilent tells.
	silent = `(runner:soak_streams:open{testid="$testid"} > bool 0) * (runner:soak_reports:newest == bool runner:soak_reports:newest offset 20s)`
)

// lastOf selects what runners told last of a metric: an ended run is still shown.
func lastOf(metric string) string {
	return `(last_over_time(k6_soak_` + metric + ofRun + `[$__range]))`
}

func soak() Board {
	return Board{
		Name: "soak", Title: "Soak: the run",
		About: "One run: streams planned and held, messages sent and received, its runners and its alerts. " +
			"The runners report every 5 s what their ledgers counted; results/TESTID/verdict.json decides.",
		Variables: []Variable{testID, instanceOf("backend_streams_open", "backends of the run")},
		Rows: []Row{
			{Title: "Criteria, as far as Prometheus sees them (verdict.json decides)", lines: []line{
				{
					number("Streams held", count,
						"Streams open now, from k6: opened minus closed. While the run holds, this is the plan.",
						clientOpen, "held"),
					number("Opened, of planned", units.PercentUnit,
						"Streams opened so far, from k6, as a share of the plan. In verdict.json: connections opened. Clients that reconnect open more.",
						opened+` / `+plannedAll, "opened").badBelow(1).ofWhole().explainedBy("Planned and open streams"),
					number("Refused", count,
						"Connections that never became a stream, from the ledgers. One is enough to fail the run. The panel Ended by cause says why.",
						`sum(k6_soak_streams_refused{testid="$testid"})`, "refused").badFrom(1).explainedBy("Ended by cause, client"),
					number("Lost", count,
						"Streams that ended before anyone asked, from the ledgers, whatever ended them; with RECONNECT=1 those that went on are among them.",
						`sum(testid:soak_streams:lost{testid="$testid"})`, "lost").badFrom(1).explainedBy("Ended by cause, client"),
					number("Ended as asked", units.PercentUnit,
						"Of the planned streams, those that were held to the end and then ended by the server, from the ledgers. In verdict.json: connections held to "+
							"the end. It is 0 until the last seconds of the run and then 100 %.",
						`sum(k6_soak_streams_completed{testid="$testid"}) / `+plannedAll, "completed").ofWhole(),
					number("Checks passed", units.PercentUnit,
						"The worst of the three checks of connectionTest.js, from k6; they run when a stream ends, so there is nothing before the end of the run. "+
							"`Received all messages` is the ledger's own word.",
						`min(k6_checks_rate{testid="$testid"})`, "passed").badBelow(1).ofWhole().explainedBy("Missed and faulty messages"),
				},
				{
					number("Missed", count,
						"Noops owed, by number or by clock, that did not come, or messages that were skipped, from the ledgers: exact to the single one. What a silent "+
							"stream owes is known when it speaks again or ends; what was published to it last, in verdict.json.",
						`sum(testid:soak_noops:missed{testid="$testid"})`, "missed").badFrom(1).explainedBy("Missed and faulty messages"),
					number("Faulty", count,
						"Noops or messages that came again, after a later one, or as something else, from the ledgers. Each fails the run.",
						`sum(`+faulty+`)`, "faulty").badFrom(1).explainedBy("Missed and faulty messages"),
					number("Late", count,
						"Noops that came more than LATE_MS (1 s by default) after their interval, messages that came so long after they were sent, from the ledgers, in "+
							"all. They fail the run only where MAX_LATE says so.",
						`sum(k6_soak_noops_late_total{testid="$testid"})`, "late"),
					number("Lateness now, p99", units.Seconds,
						"By how much the latest noops came after their interval, or messages after they were sent, from the ledgers: the p99 of the last seconds in "+
							"which any came, of the worst runner.",
						`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99").badFrom(1).explainedBy("Lateness"),
					number("Sent, not received", count,
						"Noops and messages sent, by the backend's own count, minus events that k6 received, since the left edge of the dashboard. While noops flow it swings "+
							"by up to one noop per stream, because the two counters are read at different times. What is left 10 s after the end is loss. Below 0: the backend "+
							"was restarted, or another client received. "+onlyThisRun,
						sentSince+` - `+receivedSince, "missing").badFrom(1).explainedBy("Messages in all"),
					number("Backend restarts", count,
						"How often the start time of the backend's process changed since the left edge of the dashboard. A restart disconnects every client.",
						`sum(changes(process_start_time_seconds{job="backend",instance=~"$instance"}[$__range]))`, "restarts").badFrom(1).explainedBy("Restarts"),
				},
			}},
			{Title: "Now", lines: []line{
				{
					number("Phase", count,
						"What the run does: streams open, all are held, or their planned end has come.",
						`(sum(k6_sse_connection_opened_total{testid="$testid"}) >= bool `+plannedAll+`) + (max(k6_soak_remaining_seconds{testid="$testid"}) <= bool 0)`, "phase").
						named("opening", "holding", "ending"),
					number("Remaining", units.Seconds,
						"Time until the first streams of the plan end. Ending, collecting and judging come after that.",
						`max(k6_soak_remaining_seconds{testid="$testid"})`, "remaining"),
					number("Elapsed", units.Seconds,
						"Time from the first report of a runner to the last one, within 12 hours.",
						`max(max_over_time(`+reports+`)) - min(min_over_time(`+reports+`))`, "elapsed"),
					number("Control group late", units.Seconds,
						"The longest lateness of the control group in the last seconds, of the worst runner. High: the runner or the network is late, not the service. Empty "+
							"without a control group.",
						`max(k6_soak_control_lateness_max_seconds{testid="$testid"})`, "max").badFrom(1).explainedBy("Lateness"),
					number("Runners missing", count,
						"Planned runners that have not reported in this time, and those that have streams open and told nothing for 20 s: killed, or cut off from Prometheus.",
						`max(k6_soak_runners_planned{testid="$testid"}) - (count(`+byRunner+lastOf("streams_planned")+` unless `+byRunner+`(`+silent+`) > 0) or vector(0))`, "missing").badFrom(1).explainedBy("Runners"),
					number("Hosts end in", units.Seconds,
						"Time until the first host on AWS terminates itself; empty elsewhere. `bin/soak-aws extend` moves it.",
						`min(soak_host_end_timestamp_seconds) - time()`, "left").badBelow(600),
				},
				{
					table("Runners", "One row per runner, its last report: open streams, missed messages, lateness of its last seconds, CPU of one core, memory; silent if it told nothing for 20 s. One runner that is late "+
						"while the others are not is late by itself.",
						column{"Open", count, byRunner + lastOf("streams_open"), 0},
						column{"Missed", count, byRunner + `(` + lastOf("noops_missed") + ` or ` + lastOf("messages_missed") + `)`, 1},
						column{"Late p99", units.Seconds, byRunner + lastOf("lateness_p99_seconds"), 1},
						column{"CPU", units.PercentUnit, byRunner + lastOf("cpu_percent") + ` / 100`, 0},
						column{"Memory", units.BytesIEC, byRunner + lastOf("rss_bytes"), 0},
						column{"Silent", count, byRunner + `(` + silent + `)`, 1}),
					table("Firing alerts", "Alerts that fire now; /prometheus/alerts has what to do. Empty in a clean run.",
						column{"Firing", count, `sum by (alertname, severity, instance, testid) (ALERTS{alertstate="firing"})`, 0}),
				},
			}},
			{Title: "Streams", lines: []line{
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
			{Title: "Messages: noops, or those of a described service", lines: []line{
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
							"worst runner. The line is LATE_MS by default. If the control group, which has a reference in place of the service, is as late, the cause is the "+
							"runner or the network.",
						`max(k6_soak_lateness_p50_seconds{testid="$testid"})`, "p50",
						`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99",
						`max(k6_soak_lateness_max_seconds{testid="$testid"})`, "max",
						`max(k6_soak_control_lateness_max_seconds{testid="$testid"})`, "max of the control group").badFrom(1),
					heat("Lateness of all messages", eventsPerSecond,
						"From the ledgers of all runners, added up: how many messages per second came how late. Noops after their interval, messages after they were "+
							"sent. A second band above the first: some of the streams are late all the time. A column that reaches up: all were late at that moment.",
						`sum by (le) (rate(k6_soak_lateness_bucket_total{testid="$testid"}[$__rate_interval]))`),
				},
			}},
			{Title: "The publisher, if the run publishes", Collapsed: true, lines: []line{
				{
					graph("Published and confirmed", count,
						"From the runner that publishes, in all: messages it sent, and what of these the service confirmed. A gap that stays is refused, or without an "+
							"answer: report.md says which and why. Each confirmed message is owed to every stream of its topic.",
						`sum(k6_soak_published_total{testid="$testid"})`, "sent",
						`sum(k6_soak_confirmed_total{testid="$testid"})`, "confirmed"),
					graph("Heartbeats per second", eventsPerSecond,
						"From the ledgers, over one minute: what keeps streams of a described service alive, and is no message.",
						`sum(rate(k6_soak_heartbeats_total{testid="$testid"}`+noopsWindow+`))`, "heartbeats"),
				},
			}},
		},
	}
}
