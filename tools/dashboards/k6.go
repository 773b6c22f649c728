package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// ofRun selects the run; byRunner tells its runners apart by the tag that each must carry:
// `runner` by hand, `instance_id` from the k6-operator.
const (
	ofRun    = `{testid="$testid"}`
	byRunner = `sum by (runner, instance_id) `
	runner   = "runner {{runner}}{{instance_id}}"
)

const notTheProcess = "From node_exporter, of the whole machine; what the runners take of it is above."

func k6() Board {
	return Board{
		Name: "k6", Title: "Soak: the generators",
		About:     "The k6 runners: what they did, and whether they were able to. A saturated load generator must not be read as a late server.",
		Variables: []Variable{testID, instanceOf("node_uname_info", "machines that the runners are on")},
		Rows: []Row{
			{"The run", []line{
				{
					graph("Virtual users", count,
						"Virtual users that run and those set up, by runner. In a soak each holds its streams in one iteration from beginning to end. k6's own sample of "+
							"k6_vus comes once a second.",
						byRunner+`(k6_vus`+ofRun+`)`, "active, "+runner,
						byRunner+`(k6_vus_max`+ofRun+`)`, "set up, "+runner),
					graph("Streams by runner", count,
						"Opened minus closed, by runner. Shares follow from the execution segments and are equal to one.",
						byRunner+`(k6_sse_connection_opened_total`+ofRun+`) - (`+byRunner+`(k6_sse_connection_closed_total{testid="$testid",opened="true"}) or `+byRunner+`(k6_sse_connection_opened_total`+ofRun+`) * 0)`, runner),
					graph("Iterations ended", count,
						"Iterations that are over, by runner, in all. In a soak all end at the end; one before is a stream that broke.",
						byRunner+`(k6_iterations_total`+ofRun+`)`, runner),
				},
			}},
			{"The runners themselves", []line{
				{
					graph("CPU of the runners", units.PercentUnit,
						"Of one core, by runner, over 5 s. k6 runs on all cores, so it may be over 100 %; near all cores of its machine it reads noops late that came in "+
							"time.",
						byRunner+`(k6_soak_cpu_percent`+ofRun+`) / 100`, runner),
					graph("Memory of the runners", units.BytesIEC,
						"Resident set of the process, by runner. It should be flat while streams are held: the ledgers grow with streams, not with time.",
						byRunner+`(k6_soak_rss_bytes`+ofRun+`)`, runner),
					graph("Lateness by runner", units.Seconds,
						"The p99 of the noops of the last seconds, by runner. One runner that is late while the others are not is late by itself: its CPU, its machine, "+
							"its network.",
						`max by (runner, instance_id) (k6_soak_lateness_p99_seconds`+ofRun+`)`, runner).badFrom(1),
				},
			}},
			{"Streams", []line{
				{
					graph("Events per second", eventsPerSecond,
						"Events received by runner, over one minute. One line that falls while the others stay is that runner's own trouble.",
						byRunner+`(rate(k6_sse_event_total`+ofRun+noopsWindow+`))`, runner),
					graph("Time to connect", units.Seconds,
						"Dial begun to headers complete, by runner, over all its streams so far. Percentiles of two runners cannot be merged: each has its own line.",
						`max by (runner, instance_id) (k6_sse_connecting_p99`+ofRun+`)`, "p99, "+runner,
						`max by (runner, instance_id) (k6_sse_connecting_max`+ofRun+`)`, "max, "+runner).badFrom(1),
					graph("Time to the first event", units.Seconds,
						"Headers complete to the first event, by runner. It lies between 0 and the noop interval where the backend sends noops to all at once; more is a "+
							"noop that never came.",
						`max by (runner, instance_id) (k6_sse_first_event_p50`+ofRun+`)`, "p50, "+runner,
						`max by (runner, instance_id) (k6_sse_first_event_max`+ofRun+`)`, "max, "+runner),
				},
				{
					graph("Ended by cause", count,
						"Streams and attempts that ended, by reason, in all; where `opened` is false it never was a stream.",
						`sum by (reason, opened) (k6_sse_connection_closed_total`+ofRun+`)`, "{{reason}}, opened {{opened}}"),
					graph("Checks", units.PercentUnit,
						"Share of streams that passed, by check and by the worst runner; from the end of the run on.",
						`min by (check) (k6_checks_rate`+ofRun+`)`, "{{check}}").badBelow(1).ofWhole(),
				},
			}},
			{"Requests", []line{
				{
					graph("Duration of requests", units.Seconds,
						"The p99 of plain HTTP requests of the worst runner, by name; in a soak these are the DELETEs at the end.",
						`max by (name) (k6_http_req_duration_p99`+ofRun+`)`, "{{name}}"),
					graph("Failed requests", units.PercentUnit,
						"Share of plain HTTP requests without a good answer, by name, of the worst runner.",
						`max by (name) (k6_http_req_failed_rate`+ofRun+`)`, "{{name}}").badFrom(.001),
					graph("Bytes in all", units.BytesSI,
						"What the runners received and sent, headers included. k6 tells of a stream's bytes when its iteration ends, so in a soak there is nothing before "+
							"its end.",
						`sum(k6_data_received_total`+ofRun+`)`, "received",
						`sum(k6_data_sent_total`+ofRun+`)`, "sent"),
				},
			}},
			{"The machine of the generators", []line{
				{
					graph("CPU of the machine", units.PercentUnit,
						"Share of all cores in use. Above 80 % noops are read late that came in time. "+notTheProcess,
						`1 - avg by (instance) (rate(node_cpu_seconds_total{instance=~"$instance",mode="idle"}[$__rate_interval]))`, "{{instance}}").badFrom(.8),
					graph("Memory of the machine", units.BytesIEC,
						"Memory that is not available to further programs, and all there is. "+notTheProcess,
						`node_memory_MemTotal_bytes`+onHost+` - node_memory_MemAvailable_bytes`+onHost, "in use {{instance}}",
						`node_memory_MemTotal_bytes`+onHost, "total {{instance}}"),
					graph("Waiting for CPU", units.PercentUnit,
						"Share of time in which some task waited for a core. This is what makes a generator late, and load does not show it. "+notTheProcess,
						`rate(node_pressure_cpu_waiting_seconds_total`+onHost+`[$__rate_interval])`, "{{instance}}").badFrom(.2),
				},
				{
					graph("CPU of k6 in containers", units.PercentUnit,
						"Of one core, by container or pod of k6, from cAdvisor. Only where the runners are containers.",
						`sum by (name, pod) (rate(container_cpu_usage_seconds_total{name=~".*k6.*"}[$__rate_interval]))`, "{{pod}}{{name}}"),
					graph("Memory of k6 in containers", units.BytesIEC,
						"Working set by container or pod of k6, from cAdvisor, and its limit, at which the kernel kills it. Only where the runners are containers.",
						`sum by (name, pod) (container_memory_working_set_bytes{name=~".*k6.*"})`, "{{pod}}{{name}}",
						`max by (name, pod) (container_spec_memory_limit_bytes{name=~".*k6.*"} > 0)`, limit+"{{pod}}{{name}}"),
				},
			}},
		},
	}
}
