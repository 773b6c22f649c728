package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// disconnect disconnects the first n clients for a second at the end, when a message was due.
func disconnect(m *shard.Merged, n int, change func(r *ledger.Record)) {
	for i := range n {
		r := &m.Connections.Edit(i).Record
		r.Undetectable, r.LastOutage = 1, &ledger.Outage{From: r.ClosedAt, To: r.ClosedAt + time.Second}
		if change != nil {
			change(r)
		}
	}
}

// If a service ends streams at random times, a few clients are always reconnecting, even at the end of a run. If many
// clients are reconnecting, or if the service does not answer them, the run cannot pass.
func TestFewClientsMayReconnectAtTheEnd(t *testing.T) {
	t.Parallel()
	refused := []ledger.Refusal{{Reason: "status 503", Count: 1}}
	byClock := func(r *ledger.Record) { r.Numbered = false }
	for name, c := range map[string]struct {
		clients   int
		change    func(r *ledger.Record)
		maxHidden int
		want      Outcome
		reason    string
	}{
		"10 %":                          {10, nil, -1, Pass, "no noop is known to be missing; up to 10 of 23900 could be undetectable losses"},
		"11 %":                          {11, nil, -1, Invalid, "11 clients were reconnecting when the run ended, or had just reconnected, after outages of up to 1 s: messages of these outages cannot be checked; the limit is 10 % of 100 clients, not counting those whose stream the service had ended as planned; repeat the run, and set end.lifetime in the description if the service limits the lifetime of streams"},
		"11 %, by the clock":            {11, byClock, -1, Invalid, "11 clients were reconnecting"},
		"11 %, allowed by MAX_HIDDEN":   {11, nil, 11, Pass, "no noop is known to be missing; up to 11 of 23900 could be undetectable losses"},
		"few, but too many messages":    {2, nil, 1, Invalid, "up to 2 noops could be undetectable losses (MAX_HIDDEN allows 1): 2 clients were reconnecting"},
		"all, as planned":               {100, func(r *ledger.Record) { r.LastOutage.Planned = true }, -1, Pass, "no noop is known to be missing"},
		"all, as planned, then refused": {100, func(r *ledger.Record) { r.LastOutage.Planned, r.LastOutage.Refusals = true, refused }, -1, Invalid, "100 clients were reconnecting"},
		"one, without a response":       {1, func(r *ledger.Record) { r.Unanswered = 1100 * time.Millisecond }, -1, Invalid, "the service had left the reconnect attempts of 1 client unanswered for over 1 s when the run ended"},
		"one that was dropped":          {1, func(r *ledger.Record) { r.State = ledger.Waiting }, -1, Fail, "d-0 was closed by the server after 239 noops, at 23:13:16.000 UTC, and was still disconnected when the run ended, 1 s later"},
		"one, after a long retry":       {1, func(r *ledger.Record) { r.State, r.LastOutage.Requested = ledger.Waiting, time.Hour }, -1, Fail, ", and was still disconnected when the run ended, 1 s later; the service had requested a reconnection time of 1 h (retry)"},
		"11 %, after a long retry":      {11, func(r *ledger.Record) { r.LastOutage.Requested = time.Hour }, -1, Invalid, "messages of these outages cannot be checked; the service had requested a reconnection time of 1 h (retry)"},
		"one, after a short retry":      {1, func(r *ledger.Record) { r.State, r.LastOutage.Requested = ledger.Waiting, 499*time.Millisecond }, -1, Fail, "d-0 was closed by the server after 239 noops, at 23:13:16.000 UTC, and was still disconnected when the run ended, 1 s later"},
		"all, as planned, for most of the run": {100, func(r *ledger.Record) {
			r.Undetectable, r.LastOutage.Planned = 240, true
		}, -1, Invalid, "; 24000 messages could not be checked, and 23900 could"},
		"none was due meanwhile": {100, func(r *ledger.Record) {
			r.Undetectable, r.LastOutage.Planned = 0, true
		}, -1, Pass, "0 streams open to the end, 100 reconnecting"},
		"one was never disconnected": {1, func(r *ledger.Record) { r.LastOutage = nil }, -1, Invalid, "up to 1 noop could be an undetectable loss (MAX_HIDDEN allows 0): "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newReconnectRun(100)
			m.Plan.MaxHidden = c.maxHidden
			disconnect(m, c.clients, c.change)
			v := requireOutcome(t, c.want, judgeSoak(m, nil, Evidence{}))
			require.Contains(t, v.Reasons[0], c.reason)
			for _, warning := range v.Warnings {
				require.NotRegexp(t, ": $", warning)
			}
		})
	}
}

// Clients that had no stream at the end do not count as open to the end or as reconnected.
func TestClientsThatReconnectAtTheEndAreCounted(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(100)
	m.Plan.Reconnect = true
	disconnect(m, 4, func(r *ledger.Record) { r.Longest = *r.LastOutage })
	v := requireOutcome(t, Pass, judgeSoak(m, nil, Evidence{}))
	require.Equal(t, "96 open to the end, 4 reconnecting", v.Connections.EndText())
	require.Contains(t, v.Summary(), "PASS: 96 of 100 streams open to the end, 4 reconnecting")
	require.Equal(t, "96, and 4 reconnecting", check(t, v, "streams open to the end").Actual)
	require.Equal(t, "0 of 4 clients that lost a stream; no outage was longer than 1 s", check(t, v, "99.9 % of clients reconnected").Actual)

	// The last outage counts even if the first connect took longer.
	m.Plan.BackWithinS = .5
	disconnect(m, 4, func(r *ledger.Record) { r.Longest = ledger.Outage{To: r.OpenedAt} })
	v = requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}))
	require.Contains(t, v.Reasons[0], "was disconnected for 1 s; 99.9 % of the clients must reconnect within 500 ms (BACK_WITHIN)")
}

// If messages were not checked, the check names no evidence.
func TestManyReconnectsWithUncheckedMessages(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(100)
	m.Plan.Service, m.Service = "mine", shard.Service{Name: "mine", CountBasis: shard.CountNothing}
	disconnect(m, 11, func(r *ledger.Record) { r.Undetectable = 0 })
	v := requireOutcome(t, Invalid, judgeSoak(m, nil, Evidence{}))
	require.Equal(t, "0", check(t, v, "undetectable losses").Actual)
	require.Contains(t, v.Reasons[0], "11 clients were reconnecting when the run ended")
}

// Messages that the service had written when a client lost its stream may have been in transit, so the server's ledger
// proves no loss.
func TestServerLedgerIsIgnoredForDisconnectedClients(t *testing.T) {
	t.Parallel()
	m := newReconnectRun(100)
	disconnect(m, 1, nil)
	server := ServerLedger{}
	for c := range m.Connections.All() {
		id := m.Plan.ClientID(c)
		server[id] = ServerEntry{ID: id, First: 1, Last: noopsEach, Sent: noopsEach}
	}
	server["d-0"] = ServerEntry{ID: "d-0", First: 1, Last: noopsEach + 1, Sent: noopsEach + 1}
	v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
	require.EqualValues(t, 1, v.Evidence.Undetectable)
	m.Connections.Edit(0).LastOutage = nil
	require.Equal(t, Fail, judgeSoak(m, server, Evidence{}).Verdict, "a loss of a client whose stream was open must fail the run")
}

// If messages deviate from their schedule by more than the assumed jitter, messages that are missing by interval alone
// may have arrived.
func TestJitterBeyondTheAssumptionIsNotAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uneven uint64
		change func(r *ledger.Record)
		want   Outcome
	}{
		"much jitter, none missed":          {60, func(*ledger.Record) {}, Pass},
		"much jitter, one missed":           {60, func(r *ledger.Record) { addFault(r, ledger.KindUnsent, 1) }, Invalid},
		"much jitter, one number lost":      {60, func(r *ledger.Record) { addFault(r, ledger.KindLost, 1) }, Fail},
		"much jitter, one interval differs": {60, func(r *ledger.Record) { r.Interval, r.IntervalError = 12*time.Second, time.Second }, Invalid},
		"little jitter, one missed":         {20, func(r *ledger.Record) { addFault(r, ledger.KindUnsent, 1) }, Fail},
		"jitter at the limit, one missed":   {23, func(r *ledger.Record) { r.UnevenGaps += 89; addFault(r, ledger.KindUnsent, 1) }, Fail},
	} {
		m := newReconnectRun(100)
		for i := range 100 {
			r := &m.Connections.Edit(i).Record
			r.UnevenGaps, r.Interval, r.IntervalError = c.uneven, 15*time.Second, time.Millisecond
		}
		c.change(&m.Connections.Edit(0).Record)
		v := requireOutcome(t, c.want, judgeSoak(m, nil, Evidence{}), name)
		gaps := check(t, v, "irregular gaps between noops")
		require.Equal(t, c.uneven == 60 && c.want == Pass, gaps.Unjudged, "%s: %+v", name, gaps)
		if c.want == Invalid {
			require.Contains(t, v.Reasons[0], "25 % of the gaps between two noops differ from a multiple of the interval by over 32 % of it; counting by interval assumes that", name)
		}
	}
}
