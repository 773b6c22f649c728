package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// lostRunner returns a clean run whose second runner, with one of the three clients, ended after half of the time.
func lostRunner() (*shard.Merged, ServerLedger) {
	m, server := cleanRun()
	r := &m.Runners[1]
	r.State, r.EndedUS = shard.Running, r.StartedUS+1800_000_000
	m.EarlyEnds = []string{"runner 2 on h2 did not finish: it left no final shard"}
	c := m.Connections.Edit(1)
	c.State, c.Reason, c.ClosedAt, c.StreamTime, c.OpenTime = ledger.Open, "", 0, 0, 0 // only an ended stream has these times
	c.LastAt, c.Last, c.Received = 1798500*time.Millisecond, 119, 119
	m.Checks[0].Passes = connections - 1
	return m, server
}

func TestMinCoverageLimitsUnwatchedTime(t *testing.T) {
	t.Parallel()
	const watched = "83.3 % of 10,785 client-seconds were watched"
	m, server := lostRunner()
	v := requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{RunnerEnds: []shard.RunnerEnd{{Runner: 2, Text: "runner 2 was terminated"}}}), "by default, all client time must be watched")
	assert.Equal(t, []string{"runner 2 was terminated", m.EarlyEnds[0]}, v.Reasons)
	assert.Equal(t, watched, v.Watched.String())
	assert.Equal(t, "INVALID: runner 2 was terminated; 1 of 3 clients was not observed to the end", v.Sentence)

	m.Plan.MinCoverage = 90
	v = requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{}))
	assert.Equal(t, []string{m.EarlyEnds[0], watched + "; the limit is 90 % (MIN_COVERAGE)"}, v.Reasons)

	m.Plan.MinCoverage = 80
	v = requireOutcome(t, Pass, judgeSoak(m, server, Evidence{RunnerEnds: []shard.RunnerEnd{{Runner: 2, Text: "runner 2 was terminated"}}}))
	assert.Equal(t, "PASS: no loss in the 83.3 % of 10,785 client-seconds that were watched; 2 of 3 streams open to the end, 1 until its runner ended early, 597 of 597 messages received", v.Sentence)
	assert.Equal(t, []string{"runner 2 was terminated", m.EarlyEnds[0]}, v.Warnings)
	assert.Equal(t, Connections{Planned: 3, Opened: 3, Completed: 2, Unwatched: 1}, v.Connections)
	assert.EqualValues(t, 2*noopsEach, v.Server.Sent, "the sum must omit clients whose runner ended early")

	requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{RunnerEnds: []shard.RunnerEnd{{Runner: 1, Text: "runner 1 ended with exit code 107"}}}), "runner 1 left a finished shard, so its exit code has an unknown cause")
	v = requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{RunnerEnds: []shard.RunnerEnd{{Text: "the cluster was deleted"}}}))
	assert.Equal(t, "the cluster was deleted", v.Reasons[0], "the cause must be the first reason")
}

func TestLossesInWatchedTimeFail(t *testing.T) {
	t.Parallel()
	for client, name := range []string{"of a runner that finished", "of the runner that was lost"} {
		m, server := lostRunner()
		m.Plan.MinCoverage = 80
		addFault(&m.Connections.Edit(client).Record, ledger.KindLost, 1)
		v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}), name)
		assert.Contains(t, v.Sentence, "1 of 597 messages lost on 1 of 3 clients", name)
		assert.Contains(t, v.Sentence, "83.3 % of 10,785 client-seconds were watched", name)
	}
}

// A client may wait for its next stream when its runner ends, unless its outage is already too long.
func TestOutageWhenARunnerEndsEarly(t *testing.T) {
	t.Parallel()
	for since, want := range map[time.Duration]Outcome{10 * time.Second: Pass, 40 * time.Second: Fail} {
		m, server := lostRunner()
		m.Plan.MinCoverage, m.Plan.Reconnect = 80, true
		c := m.Connections.Edit(1)
		c.State, c.Reason, c.ClosedAt = ledger.Waiting, "reset", 1800*time.Second-since
		requireOutcome(t, want, judgeSoak(m, server, Evidence{}), since)
	}
}

func TestMissingCheckOfFinishedRunnerFails(t *testing.T) {
	t.Parallel()
	m, server := lostRunner()
	m.Plan.MinCoverage = 80
	m.Checks[0].Passes = connections - 2
	assert.Equal(t, Fail, judgeSoak(m, server, Evidence{}).Verdict, "a missing check of a client of the other runner must fail the run")
}

// replacedRunner returns the run of lostRunner, with a third runner that replaced the lost one 200 s after its end.
func replacedRunner() (*shard.Merged, ServerLedger) {
	m, server := lostRunner()
	lost := &m.Runners[1]
	lost.Replaced = true
	m.Runners = append(m.Runners, shard.Runner{
		Index: 2, Host: "h3", Segment: lost.Segment, State: shard.Finished, ReplacedStartUS: lost.StartedUS, StartedUS: lost.EndedUS + 200e6, EndedUS: lost.StartedUS + 3600e6,
	})
	m.Connections.Add(&shard.Connection{Runner: 2, Record: ledger.Record{
		ID: m.Plan.ClientID(1), State: ledger.Completed, Reason: "server", Numbered: true, Attempts: 1, Streams: 1, StreamTime: 1595 * time.Second, OpenTime: 1595 * time.Second,
		OpenedAt: time.Second, ClosedAt: 1596 * time.Second, First: 130, Last: 236, Counts: ledger.Counts{Received: 106},
	}})
	m.Checks[0].Passes = connections
	return m, server
}

func TestReplacementRunnerAddsWatchedTime(t *testing.T) {
	t.Parallel()
	m, server := replacedRunner()
	assert.Equal(t, Invalid, judgeSoak(m, server, Evidence{}).Verdict, "by default, all client time must be watched")
	m.Plan.MinCoverage = 90
	v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
	assert.Equal(t, "PASS: no loss in the 98.1 % of 10,785 client-seconds that were watched; 3 of 3 streams open to the end, 703 of 703 messages received", v.Sentence)
	assert.Equal(t, Connections{Planned: 3, Opened: 3, Completed: 3}, v.Connections)
	assert.Equal(t, "its ledger lists 478 as sent, equal to the number received at the clients of runners that ran from start to end", v.Server.Comparison(v.Messages.Received))
	assert.InDelta(t, .98, v.OpenSeconds.Share, .01, "the share must include the stream that was open at the last checkpoint")

	for record, name := range map[int]string{1: "of the runner that was replaced", 3: "of the runner that replaced it"} {
		m, server := replacedRunner()
		m.Plan.MinCoverage = 90
		addFault(&m.Connections.Edit(record).Record, ledger.KindLost, 1)
		v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}), name)
		assert.Contains(t, v.Sentence, "1 of 703 messages lost on 1 of 3 clients", name)
	}
}

// If the service ended a stream before its runner was lost and replaced, the fault remains, although the next runner
// opens another stream.
func TestFaultBeforeARunnerWasReplaced(t *testing.T) {
	t.Parallel()
	m, server := replacedRunner()
	m.Plan.MinCoverage = 90
	c := m.Connections.Edit(1)
	c.State, c.Reason, c.ClosedAt = ledger.Dropped, "reset", 900*time.Second
	c.Findings = []ledger.Finding{{Kind: ledger.KindDropped, At: c.ClosedAt, Note: "reset"}}
	v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}))
	assert.Equal(t, Connections{Planned: 3, Opened: 3, Completed: 3, Dropped: 1}, v.Connections)
}
