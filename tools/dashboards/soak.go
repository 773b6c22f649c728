package dashboards

import (
	"encoding/json"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// Queries that several panels share. Queries of client metrics add up the values that all runners wrote. Each runner
// needs its own tag; otherwise the runners overwrite each other's counters (docs/stack.md).
const (
	openedQuery   = `sum(k6_sse_connection_opened_total{testid="$testid"})`
	clientOpen    = `sum(testid:k6_streams:open{testid="$testid"})`
	serverOpen    = `sum(backend_streams_open{instance=~"$instance"})`
	plannedQuery  = `max(k6_soak_streams_planned{testid="$testid"})` // each runner reports the whole plan
	receivedQuery = `sum(k6_sse_event_total{testid="$testid"})`
	sentQuery     = `sum(backend_noops_sent_total{instance=~"$instance"} + on (job, instance) backend_messages_sent_total)`
	noopsWindow   = `[1m]` // four noops at the default interval of 15 s; with a shorter window, rates oscillate
)

// growth returns the growth of a counter since the start of the time range. Unlike increase(), it does not extrapolate.
func growth(counter, atStart string) string {
	return `(` + counter + ` - (` + atStart + ` or vector(0)))`
}

var (
	sentGrowth     = growth(sentQuery, `sum(backend_noops_sent_total{instance=~"$instance"} @ start() + on (job, instance) backend_messages_sent_total @ start())`)
	receivedGrowth = growth(receivedQuery, `sum(k6_sse_event_total{testid="$testid"} @ start())`)
)

// backendNote qualifies values of the backend, whose metrics have no label for the run.
const backendNote = "Correct only while no other run uses this backend, and reset when the backend restarts."

// ledgerQuery returns the query for a count of the ledgers: of noops, or of the messages of a described service.
func ledgerQuery(suffix string) string {
	return `(k6_soak_noops` + suffix + `{testid="$testid"} or k6_soak_messages` + suffix + `{testid="$testid"})`
}

var faultyQuery = ledgerQuery("_duplicated") + ` + ` + ledgerQuery("_reordered") + ` + ` + ledgerQuery("_corrupted")

const (
	runSelector = `{testid="$testid"}`
	// sumByRunner adds up the series of each runner. soak sets the tag `runner`; the k6-operator sets `instance_id`.
	sumByRunner = `sum by (runner, instance_id) `
)

const (
	// reportTimes selects the times at which runners reported.
	reportTimes = `timestamp(k6_soak_runners_planned{testid="$testid"})[12h:30s]`
	// silentQuery is 1 for runners that match the alert RunnerSilent.
	silentQuery = `(runner:soak_streams:open{testid="$testid"} > bool 0) * (runner:soak_reports:newest == bool runner:soak_reports:newest offset 20s)`
)

// latencyQueries returns the queries for the median and the p99 of a latency of responses, each with its legend.
func latencyQueries(name, metric string) (out []string) {
	for _, q := range []struct{ quantile, legend string }{{"0.5", "p50"}, {"0.99", "p99"}} {
		rate := `sum by (le) (rate(k6_gen_ai_client_operation_` + metric + `_seconds_bucket_total{testid="$testid"}[$__rate_interval]))`
		out = append(out, `histogram_quantile(`+q.quantile+`, `+rate+`)`, name+" "+q.legend)
	}
	return out
}

// lastValue selects the last reported value of a metric in the time range, even after the run has ended.
func lastValue(metric string) string {
	return `(last_over_time(k6_soak_` + metric + runSelector + `[$__range]))`
}

func soak() Board {
	return Board{
		Name: "soak", Title: "Soak: the run",
		About: "One run: planned and open streams, messages sent and received, runners and alerts. " +
			"Runners report the counts of their ledgers every 5 s; results/TESTID/verdict.json has the verdict.",
		Variables: []Variable{testID, instanceOf("backend_streams_open", "backends of the run")},
		Rows: []Row{
			{Title: "Checks, from the metrics (verdict.json decides)", lines: []line{
				{
					number("Open streams", count,
						"Streams open now, from k6: opened minus closed. During the hold phase this equals the "+
							"plan.",
						clientOpen, "open"),
					number("Opened, of planned", units.PercentUnit,
						"Streams opened so far, from k6, as a share of the plan. Clients that reconnect open "+
							"more than one. In verdict.json: connections opened.",
						openedQuery+` / `+plannedQuery, "opened").badBelow(1).asShare().withDetails("Planned and open streams"),
					number("Refused", count,
						"Clients that never had a stream, from the ledgers. One is enough to fail the "+
							"run. The panel 'Ended by cause, client' has the reasons.",
						`sum(k6_soak_streams_refused{testid="$testid"})`, "refused").badFrom(1).withDetails("Ended by cause, client"),
					number("Lost", count,
						"Streams that ended before soak closed them, from the ledgers. With RECONNECT=1 this "+
							"includes streams that were continued.",
						`sum(testid:soak_streams:lost{testid="$testid"})`, "lost").badFrom(1).withDetails("Ended by cause, client"),
					number("Ended on request", units.PercentUnit,
						"Share of the planned clients whose last stream ended as planned, or whose last outage "+
							"was not too long, from the ledgers. It is 0 until the last seconds of the run. In "+
							"verdict.json: connections completed.",
						`sum(k6_soak_streams_completed{testid="$testid"}) / `+plannedQuery, "completed").asShare(),
					number("Checks passed", units.PercentUnit,
						"The lowest pass rate of the checks of connectionTest.js, from k6. The checks run when a "+
							"stream ends, so there is no value until the first stream has ended.",
						`min(k6_checks_rate{testid="$testid"})`, "passed").badBelow(1).asShare().withDetails("Missed and faulty messages"),
				},
				{
					number("Missed", count,
						"Messages that were expected by number or by interval and did not arrive, from the "+
							"ledgers. For a silent stream they are counted when it continues or ends. The last "+
							"published messages are counted in verdict.json only.",
						`sum(testid:soak_noops:missed{testid="$testid"})`, "missed").badFrom(1).withDetails("Missed and faulty messages"),
					number("Faulty", count,
						"Messages that arrived twice, out of order or with different content, from the ledgers. "+
							"Each fails the run.",
						`sum(`+faultyQuery+`)`, "faulty").badFrom(1).withDetails("Missed and faulty messages"),
					number("Late", count,
						"Messages that arrived more than LATE_MS (1 s by default) after they were expected or "+
							"sent, from the ledgers. They fail the run only if MAX_LATE is set.",
						`sum(`+ledgerQuery("_late_total")+`)`, "late"),
					number("Lateness now, p99", units.Seconds,
						"99th percentile of the lateness of the last messages, from the ledgers, of the slowest runner.",
						`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99").badFrom(1).withDetails("Lateness"),
					number("Sent, not received", count,
						"Messages sent, as the backend counts them, minus events received by k6, since the "+
							"start of the time range. During the run it varies by up to one message per stream, "+
							"because the two counters are read at different times. A difference that remains "+
							"10 s after the end is loss. A value below 0 means that the backend was restarted. "+backendNote,
						sentGrowth+` - `+receivedGrowth, "missing").badFrom(1).withDetails("Messages per second"),
					number("Backend restarts", count,
						"Changes of the start time of the backend process since the start of the time range. A "+
							"restart disconnects all clients.",
						`sum(changes(process_start_time_seconds{job="backend",instance=~"$instance"}[$__range]))`, "restarts").badFrom(1).withDetails("Ended by cause, server"),
				},
			}},
			{Title: "Now", lines: []line{
				{
					number("Phase", count,
						"Phase of the run: streams are opening, all are open, or the planned end has passed.",
						`(sum(k6_sse_connection_opened_total{testid="$testid"}) >= bool `+plannedQuery+`) + (max(k6_soak_remaining_seconds{testid="$testid"}) <= bool 0)`, "phase").
						withNames("opening", "holding", "ending"),
					number("Remaining", units.Seconds,
						"Time until the first streams reach their planned end. Closing them, the merge and the "+
							"verdict follow.",
						`max(k6_soak_remaining_seconds{testid="$testid"})`, "remaining"),
					number("Elapsed", units.Seconds,
						"Time between the first and the last report of a runner, within 12 hours.",
						`max(max_over_time(`+reportTimes+`)) - min(min_over_time(`+reportTimes+`))`, "elapsed"),
					number("Control group late", units.Seconds,
						"Maximum lateness of the control group in the last seconds, of the slowest runner. A "+
							"high value means that the runner or the network is late, not the service. Empty "+
							"without a control group.",
						`max(k6_soak_control_lateness_max_seconds{testid="$testid"})`, "max").badFrom(1).withDetails("Lateness"),
					number("Runners missing", count,
						"Planned runners without a report in this time range, and runners with open streams "+
							"and without a report for 20 s: killed, or disconnected from Prometheus.",
						`max(k6_soak_runners_planned{testid="$testid"}) - (count(`+sumByRunner+lastValue("runners_planned")+` unless `+sumByRunner+`(`+silentQuery+`) > 0) or vector(0))`, "missing").badFrom(1).withDetails("Runners"),
					number("Hosts end in", units.Seconds,
						"Time until the first host on AWS terminates itself; empty elsewhere. `bin/soak-aws "+
							"extend` postpones it.",
						`min(soak_host_end_timestamp_seconds) - time()`, "left").badBelow(600),
				},
				{
					table("Runners", "One row per runner, from its last report: open streams, missed messages, lateness of the "+
						"last seconds, CPU of one core, memory. Silent: no report for 20 s. If one runner is late "+
						"and the others are not, its machine is the cause.",
						column{"Open", count, sumByRunner + lastValue("streams_open"), 0},
						column{"Missed", count, sumByRunner + `(` + lastValue("noops_missed") + ` or ` + lastValue("messages_missed") + `)`, 1},
						column{"Late p99", units.Seconds, sumByRunner + lastValue("lateness_p99_seconds"), 1},
						column{"CPU", units.PercentUnit, sumByRunner + lastValue("cpu_percent") + ` / 100`, 0},
						column{"Memory", units.BytesIEC, sumByRunner + lastValue("rss_bytes"), 0},
						column{"Silent", count, sumByRunner + `(` + silentQuery + `)`, 1}),
					table("Firing alerts", "Alerts that fire now; /prometheus/alerts describes the remedies. Empty in a clean run.",
						column{"Firing", count, `sum by (alertname, severity, instance, testid) (ALERTS{alertstate="firing"})`, 0}),
				},
			}},
			{Title: "Streams", lines: []line{
				{
					graph("Planned and open streams", count,
						"Planned streams, streams open at the client (opened minus closed, from k6) and at the "+
							"server (from the backend). A lasting difference means half-open streams: one side has "+
							"lost a connection that the other still has.",
						plannedQuery, "planned",
						clientOpen, "open at the client",
						serverOpen, "open at the server"),
					graph("Time to connect", units.Seconds,
						"Time from dialing to the end of the response headers, from k6, of the slowest runner, "+
							"over all streams so far. Values of 1, 2 or 3 s mean that SYNs were retransmitted "+
							"because an accept queue was full: see the listen overflows of the machine.",
						`max(k6_sse_connecting_p50{testid="$testid"})`, "p50",
						`max(k6_sse_connecting_p99{testid="$testid"})`, "p99",
						`max(k6_sse_connecting_max{testid="$testid"})`, "max").badFrom(1),
				},
				{
					graph("Ended by cause, client", count,
						"Attempts and streams that ended since the start of the run, from k6, by the reasons of "+
							"load-tests/types/sse.d.ts. A clean run has only `server`, at its end.",
						`sum by (reason) (k6_sse_connection_closed_total{testid="$testid"})`, "{{reason}}"),
					graph("Ended by cause, server", count,
						"Streams that ended since the start of the time range, from the backend, by its "+
							"reasons. `forcedisconnect`: closed by the DELETE of a clean run; `client`: closed by "+
							"the client; `slow`: the client did not read; `error`: the connection broke. "+backendNote,
						`sum by (reason) (backend_streams_closed_total{instance=~"$instance"}`+` - (backend_streams_closed_total{instance=~"$instance"} @ start() or backend_streams_closed_total{instance=~"$instance"} * 0))`, "{{reason}}"),
				},
			}},
			{Title: "Messages (noops, or messages of a described service)", lines: []line{
				{
					graph("Messages per second", messagesPerSecond,
						"Average of one minute. Expected: streams open at the backend divided by its noop "+
							"interval. Sent: the counter of the backend. Received: the ledgers, the only line for "+
							"described services. The three lines coincide during the hold phase.",
						`sum(avg_over_time(backend_streams_open{instance=~"$instance"}`+noopsWindow+`)) / max(backend_noop_interval_seconds{instance=~"$instance"})`, "expected",
						`sum(instance:backend_noops:rate1m{instance=~"$instance"})`, "sent",
						`sum(testid:soak_noops:rate1m{testid="$testid"})`, "received"),
					graph("Missed and faulty messages", count,
						"Totals of the ledgers. A line rises when the first fault is detected; connections.csv "+
							"lists the streams. A message that arrives out of order moves from missed to out of "+
							"order.",
						`sum(testid:soak_noops:missed{testid="$testid"})`, "missed",
						`sum(`+ledgerQuery("_duplicated")+`)`, "duplicated",
						`sum(`+ledgerQuery("_reordered")+`)`, "out of order",
						`sum(`+ledgerQuery("_corrupted")+`)`, "corrupted").badFrom(1),
				},
				{
					graph("Lateness", units.Seconds,
						"Delay of the messages of the last seconds after they were expected or sent, of the "+
							"slowest runner. The threshold is LATE_MS (1 s by default). If the control group, whose "+
							"streams lead to a reference server, is as late, the cause is the runner or the "+
							"network.",
						`max(k6_soak_lateness_p50_seconds{testid="$testid"})`, "p50",
						`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99",
						`max(k6_soak_lateness_max_seconds{testid="$testid"})`, "max",
						`max(k6_soak_control_lateness_max_seconds{testid="$testid"})`, "max of the control group").badFrom(1),
					heat("Lateness of all messages", messagesPerSecond,
						"Messages per second by lateness, from the ledgers of all runners. A second band: some "+
							"streams are always late. A high column: all streams were late at that moment.",
						`sum by (le) (rate(k6_soak_lateness_bucket_total{testid="$testid"}[$__rate_interval]))`),
				},
			}},
			{Title: "The publisher, if the run publishes", Collapsed: true, lines: []line{
				{
					graph("Published and confirmed", count,
						"Totals of the runner that publishes: messages sent, and messages that the service "+
							"confirmed. If a difference lasts, messages were refused or not answered; report.md has the "+
							"reasons. Each confirmed message is expected on every stream of its topic.",
						`sum(k6_soak_published_total{testid="$testid"})`, "sent",
						`sum(k6_soak_confirmed_total{testid="$testid"})`, "confirmed"),
				},
			}},
			{Title: "Responses, if they end by themselves (soak run finite)", Collapsed: true, lines: []line{
				{
					graph("Responses by state", requestsPerSecond,
						"Responses that ended, per second, by the states of verdict.json. A clean run has only `complete`.",
						`sum by (state) (rate(k6_soak_responses_total{testid="$testid"}[$__rate_interval])) > 0`, "{{state}}"),
					graph("First content and inter-chunk latency", units.Seconds,
						"Time from the intended start of a request to its first content (ttft), and time between two "+
							"chunks, of complete responses of all runners. The values come from buckets from 10 ms to "+
							"82 s, each twice as wide as the previous one; verdict.json is exact to 1 %.",
						slices.Concat(latencyQueries("ttft", "time_to_first_chunk"), latencyQueries("inter-chunk", "time_per_output_chunk"))...),
				},
			}},
		},
	}
}

// An Annotation is a band on every graph for the time in which the query Expr has values. Grafana inserts labels of the
// series into title and text.
type Annotation struct{ Name, Color, Expr, title, text string }

// Annotations returns bands for the phases of a run and for events that affect it.
func (b Board) Annotations() []Annotation {
	run := `{testid!=""}`
	for _, v := range b.Variables {
		if v.Name == testID.Name {
			run = `{testid="$testid"}`
		}
	}
	return []Annotation{
		{
			"Streams open", "blue", whileRising("sum by (testid)", "k6_sse_connection_opened_total"+run),
			"Streams open", "run {{testid}}",
		},
		{
			"Streams close", "purple", whileRising("sum by (testid)", "k6_sse_connection_closed_total"+run),
			"Streams close", "run {{testid}}; streams that close before the end of the run are lost",
		},
		{
			"Action started", "yellow", whileRising("max by (action, testid)", "k6_soak_action"+run),
			"Action {{action}} started", "planned by --at of run {{testid}}; the report lists its effect",
		},
		{
			"Backend restarted", "orange", `changes(process_start_time_seconds{job="backend"}[1m]) > 0`,
			"Backend restarted", "{{instance}}: all its streams were disconnected",
		},
		{
			// The query excludes TargetDown, because a missing exporter does not affect the run.
			"Alert", "red", `ALERTS{alertstate="firing",alertname!="TargetDown"}`,
			"{{alertname}}", "{{severity}} {{testid}}{{instance}}; /prometheus/alerts has the remedy",
		},
	}
}

// whileRising returns a query that has values only while the sum or the maximum of a metric grows. rate() would have no
// values if all streams opened before the first remote write of k6: the counter then starts at its final value.
func whileRising(aggregate, metric string) string {
	query := aggregate + " (" + metric
	return query + ") - (" + query + " offset 15s) or " + query + ") * 0) > 0"
}

func (a Annotation) builder() cog.Builder[dashboard.AnnotationQuery] {
	return dashboard.NewAnnotationQueryBuilder().
		Name(a.Name).Datasource(source()).Enable(true).IconColor(a.Color).
		Target(prometheus.NewDataqueryBuilder().Expr(a.Expr).RefId("Anno").Interval("5s").Range().Datasource(source()))
}

// An annotatedDashboard is a dashboard with the titles and texts of its annotations, which the SDK lacks.
type annotatedDashboard struct {
	dashboard.Dashboard
	Annotations struct {
		List []annotationText `json:"list"`
	} `json:"annotations"`
}

type annotationText struct {
	dashboard.AnnotationQuery
	TitleFormat string `json:"titleFormat"`
	TextFormat  string `json:"textFormat"`
}

func annotatedJSON(d dashboard.Dashboard, annotations []Annotation) ([]byte, error) {
	out := annotatedDashboard{Dashboard: d}
	for i, a := range d.Annotations.List {
		out.Annotations.List = append(out.Annotations.List, annotationText{a, annotations[i].title, annotations[i].text})
	}
	return json.MarshalIndent(out, "", "  ")
}
