package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	connections = 3
	noopsEach   = 239
)

func cleanRun() (*shard.Merged, ServerLedger) {
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.BackendURL = "t", "d-", connections, "http://h"
	m := &shard.Merged{
		Plan: p, Service: shard.ServiceOf(service.Noop(p.Interval())), Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
		Runners: []shard.Runner{
			{Index: 1, Host: "h1", Segment: "0:1/2", State: shard.Finished, RSSMax: 5, CPUSeconds: 36, StartedUS: 1_700_000_000_000_000, EndedUS: 1_700_003_600_000_000},
			{Index: 2, Host: "h2", Segment: "1/2:1", State: shard.Finished, RSSMax: 9, CPUSeconds: 36, StartedUS: 1_699_999_999_000_000, EndedUS: 1_700_003_599_000_000},
		},
		Checks: []shard.ScriptCheck{{Name: "Received all messages", Passes: connections}},
	}
	m.Lateness.Record(2 * time.Millisecond)
	m.Connect.Record(7 * time.Millisecond)
	server := ServerLedger{}
	for i := range connections {
		id := p.ClientID(i)
		m.Connections.Add(&shard.Connection{Runner: i % 2, Record: ledger.Record{
			ID: id, State: ledger.Completed, Reason: "server", Numbered: true, Attempts: 1, Streams: 1, StreamTime: 3595 * time.Second, OpenTime: 3595 * time.Second,
			OpenedAt: time.Second, ClosedAt: 3596 * time.Second, Last: noopsEach,
			Counts: ledger.Counts{Received: noopsEach},
		}})
		server[id] = ServerEntry{ID: id, First: 1, Last: noopsEach, Sent: noopsEach}
	}
	return m, server
}

func failedChecks(v *Verdict) (out []string) {
	for _, c := range v.Checks {
		if s := c.State(); s != Met && s != NotJudged {
			out = append(out, c.Name)
		}
	}
	return out
}

func TestCleanRunPasses(t *testing.T) {
	t.Parallel()
	for _, withLedger := range []bool{true, false} {
		m, server := cleanRun()
		m.Plan.RequireMessages = true
		if !withLedger {
			server = nil
		}
		v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{Samples: []resources.Sample{{Unix: 0, BackendRSS: 4, BackendCPU: 1}, {Unix: 100, BackendRSS: 3, BackendCPU: 2.5}}}))
		require.Equal(t, []int{0, 1, 2}, []int{v.Verdict.ExitCode(), Fail.ExitCode(), Invalid.ExitCode()})
		require.False(t, v.ConnectionsOnly())
		require.True(t, *v.MessagesChecked)
		require.Equal(t, "PASS", v.Heading())
		require.Empty(t, v.NextStep())
		require.InDelta(t, 2, v.LatenessMS.P95, .01)
		require.InDelta(t, 7, v.ConnectMS.Max, .01)
		require.EqualValues(t, 4, v.Resources.BackendRSSMax)
		require.InDelta(t, 1.5, v.Resources.BackendCPUAverage, .01)
		require.Equal(t, []string{"3 streams open to the end, 717 of 717 noops received"}, v.Reasons)
		require.Empty(t, failedChecks(v))
		require.Equal(t, "stall under 500 ms; CPU wait under 5 % of the time, or shorter than CPU time", check(t, v, "load generator on time").Limit)
		require.Equal(t, Connections{Planned: 3, Opened: 3, Completed: 3}, v.Connections)
		require.Equal(t, Messages{Totals: ledger.Totals{Expected: 717, Received: 717}, Floor: 717}, v.Messages)
		require.Equal(t, withLedger, v.Server.Known)
		require.True(t, v.Server.Agrees)
		require.EqualValues(t, 9, v.Resources.RunnerRSSMax)
		require.InDelta(t, 2, v.Resources.RunnerCPUAverage, .01)
		require.InDelta(t, 1_699_999_999, v.StartedUnix, .001)
		require.InDelta(t, 1_700_003_600, v.EndedUnix, .001)
		require.Equal(t, 2, v.Runners[0].Connections)
		require.EqualValues(t, 2*noopsEach, v.Runners[0].Received)
	}
}

// addFault adds faults of one kind to the counts of a record, and a finding about the messages from number 7 on.
func addFault(r *ledger.Record, kind ledger.Kind, count uint64) {
	note := ""
	switch kind {
	case ledger.KindLost:
		r.Received, r.Lost = r.Received-count, r.Lost+count
	case ledger.KindUnsent:
		r.Received, r.Unsent = r.Received-count, r.Unsent+count
	case ledger.KindTail:
		r.Received, r.Tail = r.Received-count, r.Tail+count
	case ledger.KindCorrupted:
		note = "x"
		r.Received, r.Corrupted = r.Received-count, r.Corrupted+count
	case ledger.KindDuplicated:
		r.Duplicated += count
	case ledger.KindReordered:
		r.Reordered += count
	case ledger.KindLate:
		r.Late += count
	case ledger.KindDropped:
		note = "reset"
		r.State, r.Reason = ledger.Dropped, note
	case ledger.KindRefused:
		note = "status 503"
	default:
	}
	r.Findings = append(r.Findings, ledger.Finding{Kind: kind, From: 7, To: 7 + count - 1, Count: count, At: 90 * time.Second, Note: note})
}

func TestRunnerKilledAtItsStartAddsNoCPU(t *testing.T) {
	m, server := cleanRun()
	before := judgeSoak(m, server, Evidence{}).Resources.RunnerCPUAverage
	m.Runners = append(m.Runners, shard.Runner{Index: 9, StartedUS: m.Runners[0].StartedUS, EndedUS: m.Runners[0].StartedUS + 13_000, CPUSeconds: .02})
	require.InDelta(t, before, judgeSoak(m, server, Evidence{}).Resources.RunnerCPUAverage, .01)
}

// A testRun is a clean run that the edit of a case changes.
type testRun struct {
	*shard.Merged
	server   ServerLedger
	evidence Evidence
}

func (r *testRun) record(client int) *ledger.Record { return &r.Connections.Edit(client).Record }

// setServer sets the number of noops that the server's ledger lists for a client, and their last number.
func (r *testRun) setServer(client int, sent, last uint64) {
	id := r.Plan.ClientID(client)
	r.server[id] = ServerEntry{ID: id, First: 1, Last: last, Sent: sent}
}

// A judgeCase is an edit of a clean run, with its outcome, its unmet checks and its reasons.
type judgeCase struct {
	name    string
	edit    func(r *testRun)
	want    Outcome
	checks  []string
	reasons []string
}

// judgeCases judges the run of each case twice: the result must be the same.
func judgeCases(t *testing.T, cases []judgeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var r testRun
			r.Merged, r.server = cleanRun()
			c.edit(&r)
			v := requireOutcome(t, c.want, judgeSoak(r.Merged, r.server, r.evidence))
			require.Equal(t, c.checks, failedChecks(v))
			require.Equal(t, c.reasons, v.Reasons)
			require.Equal(t, v.Messages.Received+v.Messages.Missed+v.Messages.Corrupted, v.Messages.Expected)
			require.Equal(t, v, judgeSoak(r.Merged, r.server, r.evidence), "a second judgment must give the same verdict")
		})
	}
}

var allReceived = []string{"3 streams open to the end, 717 of 717 noops received"}

func TestEachCheck(t *testing.T) {
	t.Parallel()
	judgeCases(t, []judgeCase{
		{"a shard is missing", func(r *testRun) { r.Problems = []string{"runner 2 of 2 left no shard"} },
			Invalid, []string{"data complete"}, []string{"runner 2 of 2 left no shard"}},
		{"a runner was killed", func(r *testRun) { r.evidence.Problems = []string{"runner 1 was terminated"} },
			Invalid, []string{"data complete"}, []string{"runner 1 was terminated"}},
		{"a shard is missing, and one noop arrived twice", func(r *testRun) {
			addFault(r.record(0), ledger.KindDuplicated, 1)
			r.Problems = []string{"runner 2 of 2 left no shard"}
		}, Invalid, []string{"data complete", "noops duplicated"}, []string{"runner 2 of 2 left no shard", "d-0 received noop 7 twice, the second time at 22:14:50.000 UTC"}},
		{"none arrived", func(r *testRun) {
			r.server = nil
			for i := range connections {
				r.record(i).Received, r.record(i).Last, r.record(i).StreamTime, r.record(i).OpenTime = 0, 0, 0, 0
			}
		}, Invalid, []string{"noops checked"}, []string{"no noop was received, so no message was checked"}},
		{"one lost", func(r *testRun) { addFault(r.record(1), ledger.KindLost, 1) },
			Fail, []string{"noops missed"}, []string{"d-1 missed noop 7: the number was skipped (noticed at 22:14:49.000 UTC)"}},
		{"one never sent", func(r *testRun) {
			r.record(0).Last = noopsEach - 1
			r.setServer(0, noopsEach-1, noopsEach-1)
			addFault(r.record(0), ledger.KindUnsent, 1)
		}, Fail, []string{"noops missed"}, []string{"d-0 missed 1 noop: nothing arrived when due, until 22:14:50.000 UTC"}},
		{"one twice", func(r *testRun) { addFault(r.record(0), ledger.KindDuplicated, 1) },
			Fail, []string{"noops duplicated"}, []string{"d-0 received noop 7 twice, the second time at 22:14:50.000 UTC"}},
		{"one out of order", func(r *testRun) { addFault(r.record(0), ledger.KindReordered, 1) },
			Fail, []string{"noops reordered"}, []string{"d-0 received noop 7 out of order, at 22:14:50.000 UTC"}},
		{"one corrupted", func(r *testRun) { addFault(r.record(0), ledger.KindCorrupted, 1) },
			Fail, []string{"noops corrupted"}, []string{`d-0 received noop 7 corrupted at 22:14:50.000 UTC: "x" instead of "0"`}},
		{"one dropped", func(r *testRun) { addFault(r.record(0), ledger.KindDropped, 1) },
			Fail, []string{"streams open to the end"}, []string{"d-0 was disconnected (reset) after 239 noops, at 22:14:50.000 UTC"}},
		{"one waits for its reconnect when the run ends", func(r *testRun) { r.record(0).State = ledger.Waiting },
			Fail, []string{"streams open to the end"}, []string{
				"d-0 was closed by the server after 239 noops, and it did not reconnect, at 23:13:16.000 UTC",
			}},
		{"one was disconnected for longer than MAX_OUTAGE when the run ended", func(r *testRun) {
			c := r.record(0)
			c.State, c.LastOutage = ledger.Waiting, &ledger.Outage{From: c.ClosedAt, To: c.ClosedAt + 31*time.Second, Refusals: []ledger.Refusal{{Reason: "status 503", Count: 9}}}
		}, Fail, []string{"streams open to the end"}, []string{"d-0 was closed by the server after 239 noops, at 23:13:16.000 UTC, and was still disconnected when the run ended, 31 s later; it was refused 9 times (status 503)"}},
		{"one that the server did not end", func(r *testRun) {
			r.record(0).State, r.record(0).Reason = ledger.Unfinished, ledger.ReasonClient
			r.record(0).StreamTime += 23 * time.Second
		}, Fail, []string{"streams open to the end"}, []string{"the server did not end 1 stream within 22.5 s of the request (END_TIMEOUT)"}},
		{"one that broke after the request to end, and one that was stopped", func(r *testRun) {
			r.record(0).State, r.record(0).Reason = ledger.Unfinished, "reset"
			r.record(1).State, r.record(1).Reason = ledger.Unfinished, ledger.ReasonInterrupted
		}, Fail, []string{"streams open to the end"}, []string{
			"1 stream ended with an error after the request to end: reset (once)",
			"1 stream was open when the run was stopped or the script closed it",
		}},
		{"one refused", func(r *testRun) {
			delete(r.server, "d-0")
			*r.record(0) = ledger.Record{ID: "d-0", State: ledger.Refused, Attempts: 1}
			addFault(r.record(0), ledger.KindRefused, 1)
		}, Fail, []string{"clients connected", "streams open to the end"}, []string{"d-0 was refused at 22:14:50.000 UTC (status 503)", "1 client was refused"}},
		{"one received too few for its open time", func(r *testRun) {
			r.record(0).Received, r.record(0).Last = noopsEach-1, noopsEach-1
			r.setServer(0, noopsEach-1, noopsEach-1)
		}, Fail, []string{"noops expected per client"}, []string{"d-0 was open for 59 min 55 s and its ledger expected 238 noops, but at least 239 were due"}},
		{"one missed messages and was open too long for its count", func(r *testRun) { r.record(0).Received, r.record(0).Lost = noopsEach-3, 2 }, Fail,
			[]string{"noops missed", "noops expected per client"}, []string{"noops missed: 2 (limit: 0)", "d-0 was open for 59 min 55 s and its ledger expected 238 noops, but at least 239 were due"}},
		{"the server ends one 20 s after the request", func(r *testRun) { r.record(0).StreamTime += 20 * time.Second }, Pass, nil, allReceived},
		{"the last two are lost, as only the server's ledger shows", func(r *testRun) { r.setServer(1, noopsEach+2, noopsEach+2) },
			Fail, []string{"noops missed"}, []string{
				"d-1 missed noops 240 and 241: nothing arrived after noop 239 before the stream closed at 23:13:15.000 UTC; the server's ledger lists them as sent",
			}},
		{"two streams lost the same ones at the end", func(r *testRun) {
			r.setServer(0, noopsEach+2, noopsEach+2)
			r.setServer(2, noopsEach+2, noopsEach+2)
		}, Fail, []string{"noops missed"}, []string{"2 clients of runner 1 missed noops 240 and 241: nothing more arrived before the end of the stream, at 23:13:16.000 UTC (first: d-0)"}},
		{"the last one is lost, as the interval and the server's ledger show", func(r *testRun) {
			r.record(1).Last = noopsEach - 1
			addFault(r.record(1), ledger.KindTail, 1)
		}, Fail, []string{"noops missed"}, []string{"d-1 missed noop 239: nothing arrived after noop 238 before the stream closed at 22:14:49.000 UTC; the server's ledger lists it as sent"}},
		{"the server's ledger lists fewer", func(r *testRun) { r.setServer(1, 200, 200) },
			Fail, []string{"server's own count"}, []string{"d-1 received number 239, but the last number in the server's ledger is 200"}},
		{"the server sent a different number of noops", func(r *testRun) { r.setServer(1, noopsEach+4, noopsEach) },
			Fail, []string{"server's own count"}, []string{"the server's ledger lists 243 noops as sent to d-1, but 239 arrived"}},
		{"messages are sent in addition to the noops", func(r *testRun) {
			r.record(1).Messages, r.record(1).Last = 5, noopsEach+5
			r.setServer(1, noopsEach+5, noopsEach+5)
		}, Pass, nil, allReceived},
		{"a message that the server did not send", func(r *testRun) {
			r.record(1).Messages, r.record(1).Last = 5, noopsEach+5
			r.setServer(1, noopsEach+4, noopsEach+5)
		}, Fail, []string{"server's own count"}, []string{"the server's ledger lists 243 noops and messages as sent to d-1, but 244 arrived"}},
		{"the server has no entry", func(r *testRun) { delete(r.server, "d-2") },
			Fail, []string{"server's own count"}, []string{"the server's ledger has no entry for d-2, which had a stream"}},
		{"a restarted server has only its new numbering", func(r *testRun) {
			r.record(1).Streams, r.record(1).Numberings, r.record(1).Last = 2, 2, 100
			r.setServer(1, 100, 100)
		}, Pass, nil, []string{"3 streams open to the end, 1 reconnect, open for 100 % of the planned time, 717 of 717 noops received"}},
		{"the server's entry starts after the first number", func(r *testRun) { r.server["d-1"] = ServerEntry{ID: "d-1", First: 100, Last: noopsEach, Sent: 140} },
			Pass, nil, allReceived},
		{"unnumbered noops are compared with the server's count, not with its numbers", func(r *testRun) {
			r.record(1).Numbered, r.record(1).Last, r.record(1).Undetectable = false, 0, 2
			r.setServer(1, noopsEach, 9)
		}, Pass, nil, allReceived},
		{"unnumbered, and the server's ledger lists more", func(r *testRun) {
			r.record(1).Numbered, r.record(1).Last = false, 0
			r.setServer(1, noopsEach+1, 9)
		}, Fail, []string{"noops missed"}, []string{"d-1 missed 1 noop: 239 arrived, and the server's ledger lists 1 more as sent; without numbers it is unknown which"}},
		{"the service has a different interval", func(r *testRun) {
			for i := range connections {
				r.record(i).Interval, r.record(i).IntervalError = 12*time.Second, 20*time.Millisecond
			}
		}, Invalid, []string{"interval between noops"}, []string{"the service sends a noop every 12 s, but the plan has 15 s: set NOOP_INTERVAL=12, or correct message.every of the description"}},
		{"the interval differs by half a percent", func(r *testRun) {
			for i := range connections {
				r.record(i).Interval, r.record(i).Received, r.record(i).Last = 15075*time.Millisecond, 238, 238
				r.setServer(i, 238, 238)
			}
		}, Pass, nil, []string{"3 streams open to the end, 714 of 714 noops received"}},
		{"one stream has a different interval", func(r *testRun) {
			r.record(0).Interval, r.record(1).Interval, r.record(2).Interval = 15*time.Second, 30*time.Second, 15*time.Second
		}, Fail, []string{"interval between noops"}, []string{"d-1 received a noop every 30 s, not every 15 s"}},
		{"late, without a limit", func(r *testRun) { r.record(0).Late = 5 }, Pass, nil, allReceived},
		{"late, at the limit", func(r *testRun) { r.Plan.MaxLate, r.record(0).Late = 5, 5 }, Pass, nil, allReceived},
		{"late, above the limit", func(r *testRun) {
			r.Plan.MaxLate, r.record(0).Late = 0, 1
			r.record(0).Findings = []ledger.Finding{{Kind: ledger.KindLate, From: 7, At: 90 * time.Second, Lateness: 1500 * time.Millisecond}}
		}, Fail, []string{"noops over 1000 ms late"}, []string{"d-0 received noop 7 late by 1.5 s, at 22:14:50.000 UTC"}},
		{"a check failed", func(r *testRun) { r.Checks[0] = shard.ScriptCheck{Name: "c", Passes: 2, Fails: 1} },
			Fail, []string{"script checks"}, []string{`the check "c" failed 1 of 3 times`}},
		{"a check did not run for each client", func(r *testRun) { r.Checks[0].Passes = 2 },
			Fail, []string{"script checks"}, []string{`the check "Received all messages" ran 2 times for 3 clients`}},
		{"no check ran", func(r *testRun) { r.Checks = nil }, Fail, []string{"script checks"}, []string{"the script ran no check"}},
		{"the backend crashed", func(r *testRun) { r.evidence.Failures = []TargetFailure{{Text: "the backend died"}} },
			Fail, []string{"target stayed up"}, []string{"the backend died"}},
		{"the backend crashed, and clients may reconnect", func(r *testRun) {
			r.Plan.Reconnect, r.evidence.Failures = true, []TargetFailure{{Text: "the backend died"}}
		}, Pass, nil, allReceived},
		{"an action restarted the backend", func(r *testRun) {
			r.evidence.Failures = []TargetFailure{{Unix: 1010, Text: "the backend died"}, {Unix: 1069, Text: "the backend died again"}}
			r.evidence.Actions = []ActionResult{{StartedUnix: 1000, EndedUnix: 1010}}
		}, Pass, nil, allReceived},
		{"the backend died before an action, after its effect, and at a time that is unknown", func(r *testRun) {
			r.evidence.Failures = []TargetFailure{{Unix: 999, Text: "before"}, {Unix: 1010, Text: "during"}, {Unix: 1071, Text: "after"}, {Text: "at some time"}}
			r.evidence.Actions = []ActionResult{{StartedUnix: 1000, EndedUnix: 1010}}
		}, Fail, []string{"target stayed up"}, []string{"before", "after", "at some time"}},
		{"the target was unreachable at the end, and clients may reconnect", func(r *testRun) {
			r.Plan.Reconnect, r.evidence.Unreachable = true, []string{"http://h no longer answers"}
		}, Fail, []string{"target answers at the end"}, []string{"http://h no longer answers"}},
	})
}

func TestEachRestartOfADeployIsCounted(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	m.Plan.Reconnect = true
	v := judgeSoak(m, server, Evidence{Failures: []TargetFailure{{Text: "backend 1 died"}, {Text: "backend 2 died"}, {Text: "backend 3 died"}}})
	require.Equal(t, "backend 1 died (and 2 more reasons)", check(t, v, "target stayed up").Actual)
}

// Clients that were not observed do not fail the checks of streams: CheckComplete reports them.
func TestChecksOmitUnobservedClients(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	m.Plan.Connections *= 2
	m.Problems = []string{"3 of 6 planned clients were not observed: d-3, d-4, d-5"}
	v := requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{}))
	require.Equal(t, m.Problems, v.Reasons)
	require.Equal(t, []string{"data complete"}, failedChecks(v))
	opened := check(t, v, "clients connected")
	require.Equal(t, []string{"3 observed clients", "3"}, []string{opened.Limit, opened.Actual})

	m.Connections.Edit(0).State, m.Connections.Edit(0).Streams = ledger.Refused, 0
	require.Contains(t, failedChecks(judgeSoak(m, server, Evidence{})), "clients connected")

	m.Connections = shard.Connections{}
	opened = check(t, judgeSoak(m, nil, Evidence{}), "clients connected")
	require.Equal(t, []string{"all clients", "not judged: no client was observed"}, []string{opened.Limit, opened.Actual})
}

func TestFrequentFindingsDoNotHideOthers(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	for range 500 {
		addFault(&m.Connections.Edit(0).Record, ledger.KindDuplicated, 1)
	}
	addFault(&m.Connections.Edit(2).Record, ledger.KindReordered, 1)
	v := judgeSoak(m, server, Evidence{})
	require.Len(t, v.Findings, maxFindings+1)
	require.Equal(t, "reordered", v.Findings[maxFindings].Kind)
	require.Equal(t, []string{"d-0 received noop 7 again, 500 times, at 22:14:50.000 UTC", "d-2 received noop 7 out of order, at 22:14:50.000 UTC"}, v.Reasons)
	require.Equal(t, []KindCount{{"duplicated", 500}, {"reordered", 1}}, v.Kinds)
	require.Equal(t, []string{"noops duplicated", "noops reordered"}, failedChecks(v))
}

func TestLatencyByTimestampNeedsOneClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		oneClock bool
		minUS    int64
		above    string
		p50      float64
	}{{true, 300, "send", 2.3}, {false, 300, "fastest", 2}, {true, -300, "fastest", 2}} {
		m, _ := cleanRun()
		m.Latency = &shard.Latency{MinUS: c.minUS, Histogram: shard.NewHistogram()}
		m.Latency.Histogram.Record(2 * time.Millisecond)
		v := judgeSoak(m, nil, Evidence{OneHost: c.oneClock})
		require.Equal(t, c.above, v.LatencyMS.Above)
		require.InDelta(t, c.p50, v.LatencyMS.P50, .03)
	}
}
