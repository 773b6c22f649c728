package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
)

var noopFormatter = Formatter{&shard.Merged{Service: shard.ServiceOf(service.Noop(time.Second))}}

// A sentence names other events only if as many of them arrived as noops are missing. A reason is not quoted as if it
// were data. The backend numbers noops and broadcasts in one sequence.
func TestSentencesExplainFaults(t *testing.T) {
	t.Parallel()
	tail := ledger.Finding{Kind: ledger.KindTail, Count: 12, From: 1, To: 12}
	others := func(name string, count uint64) ledger.Record {
		return ledger.Record{ID: "d-1", Others: []ledger.EventCount{{Name: name, Count: count}}}
	}
	for _, c := range []struct {
		record  ledger.Record
		finding ledger.Finding
		want    string
	}{
		{others("noop", 12), tail, `d-1 missed noops 1 to 12: nothing arrived before the stream closed at 15:04:05.000 UTC; other events arrived: 12 named "noop", which message.event of the description does not match`},
		{others("news", 2), tail, "d-1 missed noops 1 to 12: nothing arrived before the stream closed at 15:04:05.000 UTC"},
		{ledger.Record{ID: "d-1"}, ledger.Finding{Kind: ledger.KindCorrupted, From: 4, Note: "its number is 9, but the highest number before it was 3", Source: ledger.SourceNumber},
			"d-1 received noop 4 corrupted at 15:04:05.000 UTC: its number is 9, but the highest number before it was 3"},
		{ledger.Record{ID: "d-1", Counts: ledger.Counts{Messages: 1}}, ledger.Finding{Kind: ledger.KindLost, From: 3, To: 3, Count: 1},
			"d-1 missed noop 3: the number was skipped (noticed at 15:04:05.000 UTC); other messages have numbers of the same sequence, so one of them may be lost instead"},
	} {
		require.Equal(t, c.want, noopFormatter.Sentence(&shard.Connection{Record: c.record}, c.finding, time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)))
	}
}

// A counter that overflows restarts below the first number that the client received, or continues with negative numbers.
func TestOverflowIsNamed(t *testing.T) {
	t.Parallel()
	for last, want := range map[uint64]string{
		1<<31 - 1: "; the highest number was 2147483647 (2^31 - 1), so the counter of the service may have overflowed",
		1 << 31:   "",
		1<<32 - 1: "; the highest number was 4294967295 (2^32 - 1), so the counter of the service may have overflowed",
		1 << 53:   "; the highest number was 9007199254740992 (2^53), beyond which counters in JavaScript do not increase",
	} {
		r := &shard.Connection{Record: ledger.Record{ID: "d-1", Last: last}}
		for _, f := range []ledger.Finding{
			{Kind: ledger.KindLost, From: 1, To: last - 9, Count: last - 9}, {Kind: ledger.KindReordered}, {Kind: ledger.KindDuplicated, From: 7}, {Kind: ledger.KindCorrupted, From: last + 1, Note: "negative"}, {Kind: ledger.KindCorrupted, Note: "negative, in any order"},
		} {
			require.Equal(t, noopFormatter.sentence(r, f, time.Time{})+want, noopFormatter.Sentence(r, f, time.Time{}))
		}
	}
}

// If the server's count confirms a fault, the check is met, and states where the count differs.
func TestServerCountThatConfirmsAFault(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	addFault(&m.Connections.Edit(1).Record, ledger.KindLost, 1)
	v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}))
	require.False(t, v.Server.Agrees)
	require.True(t, v.Server.Confirms)
	count := check(t, v, "server's own count")
	require.True(t, count.Pass)
	require.Equal(t, "agrees, except for faults found", count.Limit)
	require.Equal(t, "differs on 1 stream, where faults were found", count.Actual)

	m, server = cleanRun()
	v = judgeSoak(m, server, Evidence{})
	require.False(t, v.Server.Confirms)
	require.Equal(t, "agrees", check(t, v, "server's own count").Actual)
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*shard.Merged, *Evidence)
		want string
	}{
		"a pass": {func(*shard.Merged, *Evidence) {}, "PASS: 3 of 3 streams open to the end, 717 of 717 messages received"},
		"losses that could not have been detected": {func(m *shard.Merged, _ *Evidence) {
			m.Plan.MaxHidden = 2
			m.Connections.Edit(0).Undetectable = 2
		}, "PASS: 3 of 3 streams open to the end, 717 of 717 messages received; up to 2 losses could not have been detected"},
		"losses and a dropped stream": {func(m *shard.Merged, _ *Evidence) {
			addFault(&m.Connections.Edit(0).Record, ledger.KindLost, 2)
			addFault(&m.Connections.Edit(1).Record, ledger.KindDropped, 0)
			m.Checks[0].Passes, m.Checks[0].Fails = 1, 2
		}, "FAIL: 1 stream ended early, 2 of 717 messages lost on 1 of 3 clients; first fault at 22:14:49 UTC"},
		"the cause is first": {func(m *shard.Merged, e *Evidence) {
			e.Failures = []TargetFailure{{Text: "the backend died at 06:54:10 UTC (signal: killed) and was restarted"}}
			m.Connections.Edit(1).State, m.Connections.Edit(1).Reason = ledger.Dropped, "reset"
		}, "FAIL: the backend died at 06:54:10 UTC (signal: killed) and was restarted, 1 stream ended early"},
		"a missing shard": {func(m *shard.Merged, _ *Evidence) {
			m.Problems = []string{"runner 2 of 2 left no shard"}
		}, "INVALID: runner 2 of 2 left no shard"},
		"clients that were not observed": {func(m *shard.Merged, _ *Evidence) {
			m.Plan.Connections = 6
			m.Problems = []string{"runner 2 of 2 left no shard", "3 of 6 planned clients were not observed: d-3, d-4, d-5"}
		}, "INVALID: runner 2 of 2 left no shard; 3 of 6 clients were not observed to the end"},
		"a run that was stopped": {func(m *shard.Merged, _ *Evidence) {
			for i := range m.Runners {
				r := &m.Runners[i]
				r.State, r.EndedUS = shard.Interrupted, r.StartedUS+(10*time.Second).Microseconds()
			}
			m.Problems = []string{"the run was stopped by a signal before its end"}
		}, "INVALID: stopped after 11 s of 59 min 55 s; until then 717 of 717 messages arrived"},
		"a runner that was drained": {func(m *shard.Merged, _ *Evidence) {
			m.Runners[0].State = shard.Interrupted
			m.Problems = []string{"runner 1 on h1 did not finish: it was interrupted"}
		}, "INVALID: runner 1 on h1 did not finish: it was interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := cleanRun()
			var e Evidence
			c.edit(m, &e)
			require.Equal(t, c.want, judgeSoak(m, nil, e).Summary())
		})
	}
	unconfirmed := &Verdict{Verdict: Fail, Checks: []Check{{ID: CheckConfirmed}, {ID: CheckConfirmed}}, Counts: Counts{Messages: Messages{Published: &Publication{Sent: 3, Confirmed: 1}}}}
	require.Equal(t, "FAIL: 2 of 3 published messages not confirmed by the service", unconfirmed.summarize())
	require.Equal(t, "INVALID: there is no verdict", (&Verdict{Verdict: Invalid, Reasons: []string{"there is no verdict"}}).Summary())
}

// A check that is not judged has the same limit as in a complete run.
func TestStreamsOfAStoppedRunAreNotJudged(t *testing.T) {
	t.Parallel()
	for missing, want := range map[int]string{0: "3", 2: "3 observed clients"} {
		m, server := cleanRun()
		m.Plan.Connections += missing
		for i := range m.Runners {
			m.Runners[i].State, m.Runners[i].EndedUS = shard.Interrupted, m.Runners[i].StartedUS+1800_000_000
		}
		for i := range connections {
			c := m.Connections.Edit(i)
			c.State, c.Reason, c.ClosedAt, c.StreamTime, c.OpenTime = ledger.Open, "", 0, 0, 0
			c.LastAt, c.Last, c.Received = 1798500*time.Millisecond, 119, 119
		}
		v := requireOutcome(t, Invalid, judgeSoak(m, server, Evidence{Problems: []string{"the run was stopped by a signal before its end"}}))
		c := check(t, v, "streams open to the end")
		require.Equal(t, []string{want, "not judged: all runners ended early"}, []string{c.Limit, c.Actual})
		require.Equal(t, "stopped after 30 min 1 s of 59 min 55 s", check(t, v, "data complete").Actual)
		require.Equal(t, ByNumbers, v.Evidence.Kind, "the ledger must not count as evidence if no client is compared with it")
	}
}

// The summary states that the named stream is one of several.
func TestSummaryCountsOtherSilentStreams(t *testing.T) {
	t.Parallel()
	c := Check{ID: CheckSilence, Name: "longest silence of a stream", Reasons: []string{"s-1 was silent for 10 s", "s-2 was silent for 10 s", "s-3 was silent for 9 s"}}
	text, _ := new(Verdict).clause(&c)
	require.Equal(t, "s-1 was silent for 10 s (and 2 more reasons)", text)
}

// The same message lost on several clients is one number. Different messages have a total.
func TestLossesOfSeveralClients(t *testing.T) {
	t.Parallel()
	for count, want := range map[uint64]string{
		1: "2 clients missed noop 7: the number was skipped",
		2: "2 clients missed noops 7 and 8: the numbers were skipped",
	} {
		m, _ := cleanRun()
		for i := range 2 {
			addFault(&m.Connections.Edit(i+1).Record, ledger.KindLost, count)
		}
		v := requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}))
		require.Contains(t, v.Reasons[0], want)
	}
	all := bundle{cause: cause{kind: ledger.KindReordered}, isMixed: true, clients: 10, count: 150}
	require.Equal(t, "received a total of 150 noops out of order", noopFormatter.phrase(&all))
	all.cause.kind = ledger.KindLost
	require.Equal(t, "missed a total of 150 noops: the numbers were skipped", noopFormatter.phrase(&all))
}
