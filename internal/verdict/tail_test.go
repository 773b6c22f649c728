package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The clock, the numbers and the server's ledger each show a part of the missing messages. Together they name each
// message once: noops 5 and 6, not noop 5 twice.
func TestEachLossIsNamedOnce(t *testing.T) {
	t.Parallel()
	end := "23:13:16.000 UTC"
	hole := ledger.Finding{Kind: ledger.KindLost, From: 2, To: 2, Count: 1, At: 90 * time.Second}
	tail := func(n uint64) ledger.Finding { // as a ledger writes it: From counts arrivals
		return ledger.Finding{Kind: ledger.KindTail, From: 5, Count: n, At: 3596 * time.Second}
	}
	for name, c := range map[string]struct {
		edit   func(r *ledger.Record)
		server ServerEntry
		missed uint64
		want   []string
	}{
		"the clock finds the first, the server's ledger both": {
			func(r *ledger.Record) { r.Received, r.Last, r.Tail, r.Findings = 4, 4, 1, []ledger.Finding{tail(1)} },
			ServerEntry{First: 1, Last: 6, Sent: 6}, 2,
			[]string{"d-0 missed noops 5 and 6: nothing arrived after noop 4 before the stream closed at " + end + "; the server's ledger lists them as sent"},
		},
		"the clock finds more than the server sent": {
			func(r *ledger.Record) { r.Received, r.Last, r.Tail, r.Findings = 4, 4, 3, []ledger.Finding{tail(3)} },
			ServerEntry{First: 1, Last: 5, Sent: 5}, 3,
			[]string{"d-0 missed noops 5 to 7: nothing arrived after noop 4 before the stream closed at " + end + "; the server's ledger lists 1 of these 3 as sent"},
		},
		"only the server's ledger": {
			func(r *ledger.Record) { r.Received, r.Last = 4, 4 },
			ServerEntry{First: 1, Last: 5, Sent: 5}, 1,
			[]string{"d-0 missed noop 5: nothing arrived after noop 4 before the stream closed at " + end + "; the server's ledger lists it as sent"},
		},
		"one in the middle, and the tail": {
			func(r *ledger.Record) {
				r.Received, r.Last, r.Lost, r.Tail, r.Findings = 4, 5, 1, 1, []ledger.Finding{hole, tail(1)}
			},
			ServerEntry{First: 1, Last: 7, Sent: 7}, 3,
			[]string{
				"d-0 missed noop 2: the number was skipped (noticed at 22:14:50.000 UTC)",
				"d-0 missed noops 6 and 7: nothing arrived after noop 5 before the stream closed at " + end + "; the server's ledger lists them as sent",
			},
		},
		"without numbers": {
			func(r *ledger.Record) {
				r.Numbered, r.Last = false, 0
				r.Received, r.Tail, r.Findings = 4, 1, []ledger.Finding{tail(1)}
			},
			ServerEntry{First: 1, Sent: 6}, 2,
			[]string{"d-0 missed 2 noops: nothing arrived after the first 4 before the stream closed at " + end + "; the server's ledger lists them as sent"},
		},
		"without numbers, on a stream that was served to its end": {
			func(r *ledger.Record) { r.Numbered, r.Last = false, 0 },
			ServerEntry{First: 1, Sent: noopsEach + 2}, 2,
			[]string{"d-0 missed 2 noops: 239 arrived, and the server's ledger lists 2 more as sent; without numbers it is unknown which"},
		},
		"no messages": {
			func(r *ledger.Record) {
				r.Numbered, r.Received, r.Last, r.Tail, r.Findings = false, 0, 0, 2, []ledger.Finding{{Kind: ledger.KindTail, From: 1, Count: 2, At: 3596 * time.Second}}
			},
			ServerEntry{First: 1, Last: 3, Sent: 3}, 3,
			[]string{"d-0 missed noops 1 to 3: nothing arrived before the stream closed at " + end + "; the server's ledger lists them as sent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			r := &m.Connections.Edit(0).Record
			c.edit(r)
			c.server.ID = r.ID
			server[r.ID] = c.server
			s := StreamsOf(m, server, false)
			require.Equal(t, c.want, s.Sentences(ledger.KindLost, ledger.KindUnsent, ledger.KindTail))
			require.Equal(t, c.missed, s.Messages.Missed)
			require.Equal(t, c.missed, s.Total(ledger.KindLost)+s.Total(ledger.KindTail))
			require.Empty(t, s.unexplained.sentences())
		})
	}
}

// crashedRun returns a run whose n streams all end within milliseconds, as if the service crashed.
func crashedRun(n int) *shard.Merged {
	m, _ := cleanRun()
	m.Connections = shard.Connections{}
	m.Plan.Connections = n
	for i := range n {
		at := 100*time.Second + time.Duration(i)*time.Millisecond
		m.Connections.Add(&shard.Connection{Record: ledger.Record{
			ID: m.Plan.ClientID(i), State: ledger.Dropped, Reason: "truncated", Numbered: true, Attempts: 1, Streams: 1, StreamTime: 99 * time.Second, OpenTime: 99 * time.Second,
			OpenedAt: time.Second, ClosedAt: at, Last: 11, Counts: ledger.Counts{Received: 11},
			Findings: []ledger.Finding{{Kind: ledger.KindDropped, At: at, Note: "truncated"}},
		}})
	}
	m.Checks = nil
	return m
}

func TestCausesComeFirstAndEqualFindingsAreOneLine(t *testing.T) {
	t.Parallel()
	const crash = "the backend died at 22:15:00 UTC (signal: killed) and was restarted"
	m := crashedRun(60)
	v := judgeSoak(m, ServerLedger{}, Evidence{Failures: []TargetFailure{{Unix: 1_700_000_100, Text: crash}}})
	require.Equal(t, []string{
		crash,
		"all 60 streams of runner 1 were closed by the server in the middle of a response, each after noop 11, at 22:15:00 UTC (first: d-0)",
		"the server's ledger has no entry for d-0, which had a stream; 59 more clients differ in the same way",
		"the script ran no check",
	}, v.Reasons)
	require.Equal(t, "target stayed up", v.Checks[0].Name)
	require.Equal(t, []KindCount{{"dropped", 60}}, v.Kinds)
	require.Len(t, v.Incidents, 1)
	require.Equal(t, 60, v.Incidents[0].Connections)
	require.Equal(t, []KindCount{{"dropped", 60}}, v.Incidents[0].Kinds)
}

// Findings about up to maxSimilar different messages have a line for each message. If there are more messages, their
// findings share one line.
func TestFindingsAreGroupedByMessageAndCause(t *testing.T) {
	t.Parallel()
	for different, want := range map[int][]string{
		2: {
			"30 streams of runner 1 were closed by the server in the middle of a response, each after noop 10, at 22:15:00 UTC (first: d-1)",
			"30 streams of runner 1 were closed by the server in the middle of a response, each after noop 11, at 22:15:00 UTC (first: d-0)",
		},
		5: {"all 60 streams of runner 1 were closed by the server in the middle of a response, after noops 7 to 11, at 22:15:00 UTC (first: d-0)"},
	} {
		m := crashedRun(60)
		for i := range 60 {
			m.Connections.Edit(i).Last -= uint64(i % different)
		}
		s := StreamsOf(m, nil, false)
		require.ElementsMatch(t, want, s.Sentences(ledger.KindDropped))
	}
	m := crashedRun(60)
	for i := range 60 {
		r := m.Connections.Edit(i)
		if i%2 > 0 {
			r.Reason, r.Findings[0].Note = "reset", "reset"
		}
		r.Runner = i % 2
	}
	m.Runners[1].StartedUS = m.Runners[0].StartedUS
	require.Equal(t, []string{
		"30 streams of runner 1 were closed by the server in the middle of a response, each after noop 11, at 22:15:00 UTC (first: d-0)",
		"30 streams of runner 2 were disconnected (reset), each after noop 11, at 22:15:00 UTC (first: d-1)",
	}, StreamsOf(m, nil, false).Sentences(ledger.KindDropped))
	for i := range 60 {
		if i >= 40 {
			r := m.Connections.Edit(i)
			r.Findings[0].At += 10 * time.Minute
		}
		m.Connections.Edit(i).Reason, m.Connections.Edit(i).Findings[0].Note = "reset", "reset"
	}
	m.Connections.Edit(5).Findings[0].Lateness, m.Connections.Edit(5).LastOutage = 31*time.Second, &ledger.Outage{}
	require.Equal(t, []string{
		"40 streams were disconnected (reset), each after noop 11, at 22:15:00 UTC, and were still disconnected when the run ended, up to 31 s later (first: d-0)",
		"20 streams were disconnected (reset), each after noop 11, at 22:25:00 UTC (first: d-40)",
	}, StreamsOf(m, nil, false).Sentences(ledger.KindDropped))
}

// A check lists at most ten reasons. An additional sentence states the exact total.
func TestReasonsOfACheckAreLimited(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	for i := range connections {
		r := &m.Connections.Edit(i).Record
		r.Lost, r.Received, r.Duplicated = 14, noopsEach-14, 1
		for k := range uint64(14) {
			r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindLost, From: 10*k + uint64(i), To: 10*k + uint64(i), Count: 1, At: time.Duration(k+1) * 100 * time.Second})
		}
		r.Findings = append(r.Findings, ledger.Finding{Kind: ledger.KindDuplicated, From: 200, At: 2000 * time.Second})
	}
	v := judgeSoak(m, server, Evidence{})
	require.Contains(t, v.Reasons[10], "… and 32 more; noops missed: 42")
}

func TestSentenceAboutOneClientIsSingular(t *testing.T) {
	t.Parallel()
	for kind, want := range map[ledger.Kind]string{
		ledger.KindAnnounced:  "d-0 was notified that messages are missing, ",
		ledger.KindRestarted:  "d-0 received numbers that restarted at 1, ",
		ledger.KindEndedEarly: "d-0 was closed by the service before the end of its lifetime (end.lifetime), ",
	} {
		m, _ := cleanRun()
		r := &m.Connections.Edit(0).Record
		for i := range 12 {
			r.Findings = append(r.Findings, ledger.Finding{Kind: kind, At: time.Minute + time.Duration(i)*time.Millisecond})
		}
		require.Contains(t, StreamsOf(m, nil, false).Sentences(kind)[0], want)
	}
}
