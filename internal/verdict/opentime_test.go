package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// attempts returns n attempts that failed for the given reason, one per second from the runner's second 1 on.
func attempts(reason string, n int) []ledger.Refusal {
	return []ledger.Refusal{{Reason: reason, Count: n, First: time.Second, Last: time.Duration(n) * time.Second}}
}

// delayFirstStream makes the first stream open after a delay, during which attempts to connect were refused.
func delayFirstStream(r *ledger.Record, d time.Duration, refused int) {
	r.Attempts, r.Connect, r.OutageTime, r.OpenedAt = refused+1, d, d, time.Second+d
	r.OpenTime = 3595*time.Second - d
	r.StreamTime = r.OpenTime + time.Second // the server ended it a second after the request
	r.Refusals = attempts("status 503", refused)
	r.Longest = ledger.Outage{From: time.Second, To: r.OpenedAt, Refusals: r.Refusals}
}

func TestOpenTimeComparedWithThePlan(t *testing.T) {
	t.Parallel()
	addOutage := func(r *ledger.Record, d time.Duration) {
		r.Streams, r.Survived, r.OutageTime, r.OpenTime, r.StreamTime = 2, 1, d, 3595*time.Second-d, 3595*time.Second-d
		r.Longest = ledger.Outage{From: 100 * time.Second, To: 100*time.Second + d}
		r.Outages = []ledger.Outage{r.Longest}
	}
	judgeCases(t, []judgeCase{
		{"refused at first, and then connected", func(r *testRun) {
			r.Plan.Reconnect = true
			delayFirstStream(r.record(0), 17*time.Second, 12)
		}, Pass, nil, []string{"3 streams open to the end, 12 refused attempts, open for 99.84 % of the planned time, 717 of 717 noops received"}},
		{"refused for longer than MAX_OUTAGE", func(r *testRun) {
			r.Plan.Reconnect = true
			delayFirstStream(r.record(0), 31*time.Second, 12)
		}, Fail, []string{"longest outage of a client"}, []string{
			"d-0 had no stream for 31 s, from 22:13:21.000 UTC until its first stream opened; meanwhile it was refused 12 times (status 503); the last refusal was 11 s after the start of the outage, and its first stream opened 20 s later",
		}},
		{"refused within a long MAX_OUTAGE", func(r *testRun) {
			r.Plan.Reconnect, r.Plan.MaxOutageS = true, 60
			delayFirstStream(r.record(0), 31*time.Second, 12)
		}, Pass, nil, []string{"3 streams open to the end, 12 refused attempts, open for 99.71 % of the planned time, 717 of 717 noops received"}},
		{"refused for long, without a limit on outages", func(r *testRun) {
			r.Plan.Reconnect, r.Plan.MaxOutageS = true, -1
			delayFirstStream(r.record(0), 1000*time.Second, 12)
		}, Pass, nil, []string{"3 streams open to the end, 12 refused attempts, open for 90.72 % of the planned time, 717 of 717 noops received"}},
		{"refused for over half of the planned time", func(r *testRun) {
			r.Plan.Reconnect, r.Plan.MaxOutageS = true, -1
			delayFirstStream(r.record(0), 2000*time.Second, 12)
		}, Fail, []string{"connected time"}, []string{
			"d-0 was connected for 26 min 35 s of the planned 59 min 55 s, and was refused 12 times (status 503)",
		}},
		{"opened late without reconnects, so that few messages were expected", func(r *testRun) {
			c := r.record(0)
			c.OpenTime, c.StreamTime, c.Connect, c.OutageTime = 10*time.Second, 10*time.Second, 3585*time.Second, 3585*time.Second
		}, Fail, []string{"connected time"}, []string{"d-0 was connected for 10 s of the planned 59 min 55 s"}},
		{"opened late without reconnects, although the connect was short", func(r *testRun) {
			c := r.record(0)
			c.OpenTime, c.StreamTime, c.Connect, c.OutageTime = 10*time.Second, 10*time.Second, time.Millisecond, time.Millisecond
		}, Fail, []string{"connected time"}, []string{"d-0 was connected for 10 s of the planned 59 min 55 s"}},
		{"two were lost, one for longer than MAX_OUTAGE", func(r *testRun) {
			r.Plan.Reconnect = true
			addOutage(r.record(0), 2*time.Second)
			addOutage(r.record(1), 40*time.Second)
		}, Fail, []string{"longest outage of a client"}, []string{"d-1 had no stream for 40 s, from 22:14:59.000 UTC until it reconnected"}},
		{"reconnected late because the service requested it", func(r *testRun) {
			r.Plan.Reconnect = true
			addOutage(r.record(1), 40*time.Second)
			r.record(1).Longest.Requested = 20 * time.Second
		}, Fail, []string{"longest outage of a client"}, []string{
			"d-1 had no stream for 40 s, from 22:14:59.000 UTC until it reconnected; the service had requested a reconnection time of 20 s (retry)",
		}},
		{"disconnected for most of the run because the service requested it", func(r *testRun) {
			r.Plan.Reconnect, r.Plan.MaxOutageS = true, -1
			addOutage(r.record(1), 2000*time.Second)
			r.record(1).Longest.Requested = 20 * time.Hour
		}, Fail, []string{"connected time", "99.9 % of clients reconnected"}, []string{
			"d-1 was connected for 26 min 35 s of the planned 59 min 55 s; the service had requested a reconnection time of 20 h (retry)",
			"d-1 was disconnected for 33 min 20 s; 99.9 % of the clients must reconnect within 60 s (BACK_WITHIN)",
		}},
		{"the runner stalled for as long as the excess", func(r *testRun) {
			r.Plan.Reconnect = true
			r.Runners[1].StallMaxUS = 10e6
			addOutage(r.record(1), 40*time.Second)
		}, Invalid, []string{"longest outage of a client", "load generator on time"}, []string{"d-1 had no stream for 40 s, from 22:14:59.000 UTC until it reconnected"}},
		{"the runner stalled for less than the excess", func(r *testRun) {
			r.Plan.Reconnect = true
			r.Runners[1].StallMaxUS = 9e6
			addOutage(r.record(1), 40*time.Second)
		}, Fail, []string{"longest outage of a client", "load generator on time"}, []string{"d-1 had no stream for 40 s, from 22:14:59.000 UTC until it reconnected"}},
		{"a plan without MAX_OUTAGE", func(r *testRun) { r.Plan.Reconnect, r.Plan.MaxOutageS = true, 0 }, Pass, nil, allReceived},
	})
}

func TestRefusedAttemptsAndOpenTimeAreSummedUp(t *testing.T) {
	t.Parallel()
	m, _ := cleanRun()
	m.Plan.Reconnect = true
	delayFirstStream(&m.Connections.Edit(0).Record, 17*time.Second, 12)
	delayFirstStream(&m.Connections.Edit(1).Record, 5*time.Second, 3)
	m.Connections.Edit(1).Refusals = append(m.Connections.Edit(1).Refusals, ledger.Refusal{Reason: "connect_timeout", Count: 1})
	v := judgeSoak(m, nil, Evidence{})
	require.Equal(t, OpenSeconds{Planned: 3 * 3595, Open: 3*3595 - 22, Share: (3*3595. - 22) / (3 * 3595)}, *v.OpenSeconds)
	require.Equal(t, map[string]int{"status 503": 15, "connect_timeout": 1}, v.RefusedAttempts)
	require.Equal(t, Outage{ID: "d-0", Unix: 1_700_000_001, Seconds: 17}, *v.LongestOutage)
}

func TestOutagesBeyondTheListAreCounted(t *testing.T) {
	t.Parallel()
	m, _ := cleanRun()
	m.Plan.Reconnect = true
	r := &m.Connections.Edit(0).Record
	r.Streams, r.Survived, r.MaxOutage, r.Longest = 41, 40, 9*time.Second, ledger.Outage{To: 12 * time.Second} // the first connect
	r.Outages = []ledger.Outage{{From: time.Second, To: 2 * time.Second}}
	v := judgeSoak(m, nil, Evidence{})
	require.Equal(t, 40, v.Reconnect.Count)
	require.InDelta(t, 9000, v.Reconnect.Max, .1)
	require.InDelta(t, 12, v.LongestOutage.Seconds, .001)
}

// The server's entry of an id belongs to another client if ours had no stream, and to both if ours was admitted after
// a 409.
func TestServerEntryOfAnotherClient(t *testing.T) {
	t.Parallel()
	refused := func(m *shard.Merged, reason string) *ledger.Record {
		r := &m.Connections.Edit(0).Record
		*r = ledger.Record{ID: "d-0", State: ledger.Refused, Reason: reason, Attempts: 1, Refusals: attempts(reason, 1)}
		r.Findings = []ledger.Finding{{Kind: ledger.KindRefused, At: 2 * time.Second, Note: reason}}
		return r
	}
	for _, reason := range []string{"status 409", "status 503", "connect_timeout"} {
		m, server := cleanRun()
		refused(m, reason)
		v := requireOutcome(t, Fail, judgeSoak(m, server, Evidence{}))
		require.Equal(t, []string{"clients connected", "streams open to the end"}, failedChecks(v), reason)
		require.Zero(t, v.Messages.Missed)
		require.EqualValues(t, 2*noopsEach, v.Server.Sent, "the sum must omit messages to other clients")
		require.Equal(t, reason == "status 409", strings.Contains(v.Reasons[0], "another client uses this PREFIX"), v.Reasons[0])
	}

	m, server := cleanRun()
	m.Plan.Reconnect = true
	delayFirstStream(&m.Connections.Edit(0).Record, 17*time.Second, 12)
	m.Connections.Edit(0).Refusals[0].Reason = "status 409"
	server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach + 9, Sent: noopsEach + 9}
	v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
	require.Contains(t, strings.Join(v.Warnings, "\n"), "the server's ledger lists streams of another client under the id d-0")

	m, server = cleanRun()
	m.Plan.Reconnect = true
	r := &m.Connections.Edit(0).Record
	r.Streams, r.Refusals = 2, []ledger.Refusal{{Reason: "status 409", Count: 1, First: time.Minute, Last: time.Minute}}
	server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach + 1, Sent: noopsEach + 1}
	v = judgeSoak(m, server, Evidence{})
	require.EqualValues(t, 1, v.Messages.Missed, "the server's entry must count if only a reconnect was refused with 409")
}

func TestRefusalNamesItsAttempts(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	m.Plan.Reconnect = true
	r := &m.Connections.Edit(0).Record
	*r = ledger.Record{ID: "d-0", State: ledger.Connecting, Reason: "status 503", Attempts: 5, Refusals: attempts("status 503", 5)}
	v := judgeSoak(m, server, Evidence{})
	require.Equal(t, 1, v.Connections.Refused, "a client between two attempts when the run was stopped must count as refused")
	require.Zero(t, v.Connections.Unfinished)
	require.Contains(t, v.Reasons, "d-0 was refused at 22:13:25.000 UTC (status 503), as in all 5 attempts within 4 s")
	require.Equal(t, v, judgeSoak(m, server, Evidence{}), "a second judgment must give the same verdict")
	r.State, r.Findings = ledger.Connecting, nil
	r.Refusals = append(r.Refusals, ledger.Refusal{Reason: "connect_timeout", Count: 1, First: 16 * time.Second, Last: 16 * time.Second})
	r.Reason = "connect_timeout"
	v = judgeSoak(m, server, Evidence{})
	require.Contains(t, v.Reasons, "d-0 was refused at 22:13:36.000 UTC (connect_timeout) after 15 s of attempts, which were refused 5 times (status 503), once (connect_timeout)")
}

func TestPassSentenceGroupsDigits(t *testing.T) {
	t.Parallel()
	s := &Streams{m: new(shard.Merged)}
	s.Connections.Completed, s.Messages.Received, s.Messages.Expected = 1200, 3600, 3600
	require.Contains(t, s.PassSentences(), "1,200 streams open to the end, 3,600 of 3,600 messages received")
}
