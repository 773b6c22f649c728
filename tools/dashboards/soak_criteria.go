package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// The criteria of verdict.json, as far as they can be seen while a run is on: two rows of numbers.

func connectionCriteria() []Panel {
	return []Panel{
		{
			Title: "Streams held", Number: true, Width: 4, Unit: units.Short,
			About:   "Streams open now, from k6: opened minus closed. While the run holds, this is the plan.",
			Queries: []Query{{clientOpen, "held"}},
		},
		{
			Title: "Opened, of planned", Number: true, Width: 4, Unit: units.PercentUnit, Limit: atLeast(1),
			About: "Streams opened so far, from k6, as a share of the plan. In verdict.json: connections opened. " +
				"Clients that reconnect open more.",
			Queries: []Query{{opened + ` / ` + plannedAll, "opened"}},
		},
		{
			Title: "Refused", Number: true, Width: 4, Unit: units.Short, Limit: atMost(1),
			About: "Connections that never became a stream, from the ledgers. One is enough to fail the run. " +
				"The panel Ended by cause says why.",
			Queries: []Query{{`sum(k6_soak_streams_refused{testid="$testid"})`, "refused"}},
		},
		{
			Title: "Lost", Number: true, Width: 4, Unit: units.Short, Limit: atMost(1),
			About: "Streams that ended before anyone asked, from the ledgers, whatever ended them; with RECONNECT=1 " +
				"those that went on are among them.",
			Queries: []Query{{`sum(testid:soak_streams:lost{testid="$testid"})`, "lost"}},
		},
		{
			Title: "Ended when asked, of planned", Number: true, Width: 4, Unit: units.PercentUnit,
			About: "Streams that were held to the end and then ended by the server, as a share of the plan, from the " +
				"ledgers. In verdict.json: connections held to the end. It is 0 until the last seconds of the run and then 100 %.",
			Queries: []Query{{`sum(k6_soak_streams_completed{testid="$testid"}) / ` + plannedAll, "completed"}},
		},
		{
			Title: "Checks passed", Number: true, Width: 4, Unit: units.PercentUnit, Limit: atLeast(1),
			About: "The worst of the three checks of connectionTest.js, from k6; they run when a stream ends, so " +
				"there is nothing before the end of the run. `Received all messages` is the ledger's own word.",
			Queries: []Query{{`min(k6_checks_rate{testid="$testid"})`, "passed"}},
		},
	}
}

func noopCriteria() []Panel {
	return []Panel{
		{
			Title: "Noops missed", Number: true, Width: 4, Unit: units.Short, Limit: atMost(1),
			About: "Noops owed, by number or by clock, that did not come, from the ledgers: exact to the single noop. " +
				"What a silent stream owes is known when it speaks again or ends.",
			Queries: []Query{{`sum(testid:soak_noops:missed{testid="$testid"})`, "missed"}},
		},
		{
			Title: "Doubled, overtaken, corrupted", Number: true, Width: 4, Unit: units.Short, Limit: atMost(1),
			About:   "Noops that came again, after a later one, or as something else, from the ledgers. Each fails the run.",
			Queries: []Query{{`sum(` + faultyNoops + `)`, "faulty"}},
		},
		{
			Title: "Noops late", Number: true, Width: 4, Unit: units.Short,
			About: "Noops that came more than LATE_MS (1 s by default) after their interval, from the ledgers, in all. They " +
				"fail the run only where MAX_LATE says so.",
			Queries: []Query{{`sum(k6_soak_noops_late_total{testid="$testid"})`, "late"}},
		},
		{
			Title: "Lateness now, p99", Number: true, Width: 4, Unit: units.Seconds, Limit: atMost(1),
			About: "By how much the latest noops came after their interval, from the ledgers: the p99 of the last seconds " +
				"in which any came, of the worst runner.",
			Queries: []Query{{`max(k6_soak_lateness_p99_seconds{testid="$testid"})`, "p99"}},
		},
		{
			Title: "Sent, not received", Number: true, Width: 4, Unit: units.Short, Limit: atMost(1),
			About: "Noops and messages that the backend says it sent minus events that k6 received, since the left edge of the " +
				"dashboard. While noops flow it swings by up to one noop per stream, because the two counters " +
				"are read at different times. What is left 10 s after the end is loss. Below 0: the backend was " +
				"restarted, or another client received. " + onlyThisRun,
			Queries: []Query{{sentSince + ` - ` + receivedSince, "missing"}},
		},
		{
			Title: "Restarts of the backend", Number: true, Width: 4, Unit: units.Short, Limit: atMost(1),
			About: "How often the start time of the backend's process changed since the left edge of the " +
				"dashboard. A restart cuts every client off.",
			Queries: []Query{{`sum(changes(process_start_time_seconds{job="backend",instance=~"$instance"}[$__range]))`, "restarts"}},
		},
	}
}

const faultyNoops = `k6_soak_noops_duplicated{testid="$testid"} + k6_soak_noops_reordered{testid="$testid"} + k6_soak_noops_corrupted{testid="$testid"}`
