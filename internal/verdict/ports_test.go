package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// If the load generator had no port, descriptor or IPv6 address for a connection, the service did not refuse that
// client.
func TestRefusalsByTheGeneratorAreInvalid(t *testing.T) {
	t.Parallel()
	refusals := func(reasons ...string) (out []ledger.Refusal) {
		for _, reason := range reasons {
			out = append(out, ledger.Refusal{Reason: reason, Count: 2, First: time.Second, Last: 2 * time.Second})
		}
		return out
	}
	refused := func(reasons ...string) func(*testRun) {
		return func(r *testRun) {
			c := r.record(0)
			*c = ledger.Record{ID: c.ID, State: ledger.Refused, Attempts: 2, Reason: reasons[0], Refusals: refusals(reasons...)}
			delete(r.server, c.ID)
			r.Checks[0].Passes, r.Checks[0].Fails = 2, 1
		}
	}
	const noPort = "2 connects failed, because the load generator had no local port left; widen net.ipv4.ip_local_port_range, or add machines for runners"
	const noDescriptor = "2 connects failed, because the load generator had no file descriptor left; raise ulimit -n, or add runners"
	const noIPv6 = "2 connects failed, because the load generator had no IPv6 address; use an IPv4 address of the service, or enable IPv6"
	for name, c := range map[string]struct {
		edit     func(*testRun)
		want     Outcome
		sentence string
	}{
		"no port":       {refused(ledger.ReasonNoPort), Invalid, noPort},
		"no descriptor": {refused(ledger.ReasonNoDescriptor), Invalid, noDescriptor},
		"no IPv6":       {refused(ledger.ReasonNoIPv6), Invalid, noIPv6},
		"one of each":   {refused(ledger.ReasonNoPort, ledger.ReasonNoDescriptor), Invalid, noDescriptor},
		"all clients": {func(r *testRun) {
			for n := range r.Plan.Connections {
				c := r.record(n)
				*c = ledger.Record{ID: c.ID, State: ledger.Refused, Attempts: 2, Reason: ledger.ReasonNoPort, Refusals: refusals(ledger.ReasonNoPort)}
				delete(r.server, c.ID)
			}
			r.Checks[0].Passes, r.Checks[0].Fails = 0, 3
		}, Invalid, "6" + noPort[1:]},
		"the service refused, too": {refused("status 503", ledger.ReasonNoPort), Fail, ""},
		"another client lost a message": {func(r *testRun) {
			refused(ledger.ReasonNoPort)(r)
			addFault(r.record(1), ledger.KindLost, 1)
		}, Fail, ""},
		"another client was refused": {func(r *testRun) {
			refused(ledger.ReasonNoPort)(r)
			c := r.record(1)
			*c = ledger.Record{ID: c.ID, State: ledger.Refused, Attempts: 2, Reason: "refused", Refusals: refusals("refused")}
			delete(r.server, c.ID)
		}, Fail, ""},
		"connected later": {func(r *testRun) { r.record(0).Refusals = refusals(ledger.ReasonNoPort) }, Invalid, noPort},
		"an outage over its limit": {func(r *testRun) {
			r.Plan.Reconnect, r.Plan.MaxOutageS = true, 5
			c := r.record(0)
			c.Refusals = refusals(ledger.ReasonNoPort)
			c.Longest = ledger.Outage{From: time.Minute, To: 70 * time.Second, Refusals: c.Refusals}
		}, Invalid, noPort},
		"an outage over its limit that the service caused": {func(r *testRun) {
			r.Plan.Reconnect, r.Plan.MaxOutageS = true, 5
			c := r.record(0)
			c.Refusals = refusals(ledger.ReasonNoPort, "status 503")
			c.Longest = ledger.Outage{From: time.Minute, To: 70 * time.Second, Refusals: refusals("status 503")}
		}, Fail, ""},
		"requests to end a stream": {func(r *testRun) {
			r.EndRequests = newEndRequests(1, time.Millisecond)
			r.EndRequests.Add("", shard.CodeNoPort, time.Unix(1_700_003_596, 0), time.Millisecond)
			r.EndRequests.Add("", shard.CodeNoPort, time.Unix(1_700_003_596, 0), time.Millisecond)
		}, Invalid, "2 requests to end a stream failed, because the load generator had no local port left; widen net.ipv4.ip_local_port_range, or add machines for runners"},
		"a request to end a stream and a lost message": {func(r *testRun) {
			r.EndRequests = new(shard.EndRequests)
			r.EndRequests.Add("", shard.CodeNoDescriptor, time.Unix(1_700_003_596, 0), time.Millisecond)
			addFault(r.record(1), ledger.KindLost, 1)
		}, Fail, ""},
		"an outage longer than the service keeps messages": {func(r *testRun) {
			loseInOutage(r, refusals(ledger.ReasonNoPort), 61*time.Second)
		}, Invalid, noPort},
		"an outage that the service caused, too": {func(r *testRun) {
			loseInOutage(r, refusals(ledger.ReasonNoPort, "refused"), 61*time.Second)
		}, Fail, ""},
		"a message lost long after the outage": {func(r *testRun) {
			loseInOutage(r, refusals(ledger.ReasonNoPort), 2*time.Minute)
		}, Fail, ""},
		"another client lost a message, too": {func(r *testRun) {
			loseInOutage(r, refusals(ledger.ReasonNoPort), 61*time.Second)
			addFault(r.record(1), ledger.KindLost, 1)
		}, Fail, ""},
		"did not reconnect": {func(r *testRun) {
			r.Plan.Reconnect = true
			c := r.record(0)
			c.State, c.Reason, c.Refusals = ledger.Waiting, ledger.ReasonNoPort, refusals(ledger.ReasonNoPort)
			c.LastOutage = &ledger.Outage{From: c.ClosedAt - time.Second, To: c.ClosedAt, Refusals: c.Refusals}
			r.Checks[0].Passes, r.Checks[0].Fails = 2, 1
		}, Invalid, noPort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			r := &testRun{Merged: m, server: server}
			c.edit(r)
			v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}))
			if c.sentence != "" {
				require.Contains(t, v.Reasons, c.sentence)
				require.Equal(t, SignalGenerator, check(t, v, "connects that failed on the load generator").ExplainedBy)
			}
		})
	}
}

// loseInOutage gives a client an outage of ten seconds, and a lost message whose loss is noticed at the given instant.
func loseInOutage(r *testRun, refusals []ledger.Refusal, at ledger.Instant) {
	r.Plan.Reconnect = true
	c := r.record(0)
	c.Refusals = refusals
	c.Outages = []ledger.Outage{{From: 50 * time.Second, To: time.Minute, Refusals: refusals}}
	addFault(c, ledger.KindLost, 1)
	c.Findings[0].At = at
	r.Checks[0].Passes, r.Checks[0].Fails = 2, 1
}
