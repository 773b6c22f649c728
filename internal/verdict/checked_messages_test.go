package verdict

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// describedRun returns a clean run of a described service. Each of its streams has the given counts.
func describedRun(basis shard.CountBasis, each ledger.Counts) *shard.Merged {
	m, _ := cleanRun()
	m.Plan.Service = "mine"
	m.Service = shard.Service{Name: "mine", SHA256: "x", CountBasis: basis}
	for i := range m.Connections.Len() {
		r := &m.Connections.Edit(i).Record
		r.Counts, r.Numbered, r.First, r.Last = each, false, 0, 0
		if basis == shard.CountByInterval {
			r.StreamTime, r.OpenTime = 0, 0 // so that no noop was due
		}
	}
	return m
}

func stateOf(t *testing.T, v *Verdict, name string) State {
	t.Helper()
	c := check(t, v, name)
	return c.State()
}

func TestUncheckedMessagesPassForConnectionsOnly(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]ledger.Counts{"quiet": {Heartbeats: 5}, "events": {Unchecked: 304}} {
		m := describedRun(shard.CountNothing, each)
		v := requireOutcome(t, Pass, judgeSoak(m, nil, Evidence{}), name)
		require.True(t, v.ConnectionsOnly(), name)
		require.Equal(t, "PASS (connections only)", v.Heading())
		require.Contains(t, v.Reasons[0], "messages were not checked")
		require.Contains(t, v.NextStep(), "soak init")
		require.Equal(t, NotJudged, stateOf(t, v, "messages checked"), name)
		require.Equal(t, NotJudged, stateOf(t, v, "undetectable losses"), name)
		content, err := json.Marshal(v)
		require.NoError(t, err)
		require.Contains(t, string(content), `"messages_checked":false`)
		var read Verdict
		require.NoError(t, json.Unmarshal(content, &read))
		require.True(t, read.ConnectionsOnly(), "the verdict must be the same after reading it from its file")

		m.Plan.RequireMessages = true
		v = requireOutcome(t, Invalid, judgeSoak(m, nil, Evidence{}), name)
		require.Contains(t, v.Reasons[0], "REQUIRE_MESSAGES")
	}
}

// If the description defines how to check messages, but no message could be checked, the run is invalid. The reason
// names the field to correct.
func TestDescriptionThatChecksNothingIsInvalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		basis shard.CountBasis
		each  ledger.Counts
		want  []string
	}{
		"no messages":          {shard.CountByNumber, ledger.Counts{Heartbeats: 5}, []string{"message.seq: ", "no message was received"}},
		"other events arrived": {shard.CountByNumber, ledger.Counts{Unchecked: 100}, []string{"message.seq: ", "although 300 other events arrived, which the description does not define as messages"}},
		"one on each stream":   {shard.CountByNumber, ledger.Counts{Received: 1}, []string{"message.seq: ", "no client received two"}},
		"none has a number":    {shard.CountByNumber, ledger.Counts{Corrupted: 100, Unnumbered: 100}, []string{"message.seq: ", "300 messages arrived without a number there"}},
		"nothing by the clock": {shard.CountByInterval, ledger.Counts{Heartbeats: 5}, []string{"no message was received, so no message was checked"}},
	} {
		v := requireOutcome(t, Invalid, judgeSoak(describedRun(c.basis, c.each), nil, Evidence{}), name)
		require.Len(t, v.Reasons, 1, name)
		for _, want := range c.want {
			require.Contains(t, v.Reasons[0], want, name)
		}
		require.False(t, *v.MessagesChecked, name)
		if c.each.Received == 0 {
			require.Equal(t, NotJudged, stateOf(t, v, "messages duplicated"), name)
		}
	}
}

// All clients of a topic receive the same numbers. If most of them did not reach a client, the loss of the others would
// be undetected, because no number is missing between those that arrived.
func TestClientsWithFewNumbersOfTheirTopic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		perTopic    bool
		first, last uint64 // numbers of the first client; the others receive 1 to 100
		want        Outcome
	}{
		{true, 1, 100, Pass},
		{true, 0, 0, Invalid},
		{true, 1, 49, Invalid},
		{true, 52, 100, Invalid},
		{true, 1, 50, Pass},
		{false, 1, 49, Pass}, // the numbers of other streams are unrelated
	} {
		m := describedRun(shard.CountByNumber, ledger.Counts{})
		m.Service.PerTopic = c.perTopic
		for i := range m.Connections.Len() {
			r := &m.Connections.Edit(i).Record
			if r.First, r.Last = 1, 100; i == 0 {
				r.First, r.Last = c.first, c.last
			}
			if r.First > 0 {
				r.Received = r.Last - r.First + 1
			}
			r.Spans = []ledger.Span{{From: r.OpenedAt, To: r.ClosedAt, First: r.First, Last: r.Last}}
		}
		v := requireOutcome(t, c.want, judgeSoak(m, nil, Evidence{}), c)
		if c.want == Pass {
			require.Contains(t, v.Summary(), "received; losses before the first and after the last message of a stream could not have been detected")
		} else {
			require.Contains(t, v.Reasons[0], fmt.Sprintf("1 client could have missed most messages unnoticed (d-0, %d of 100 messages checked)", m.Connections.Edit(0).Received))
		}
	}
}

// Messages without a number are corrupted if other messages have one. Faults of streams outrank unchecked messages.
func TestFaultsOutrankUncheckedMessages(t *testing.T) {
	t.Parallel()
	unnumbered := func(r *ledger.Record) { r.Counts = ledger.Counts{Corrupted: 10, Unnumbered: 10} }
	dropped := func(r *ledger.Record) { addFault(r, ledger.KindDropped, 1) }
	for _, c := range []struct {
		basis shard.CountBasis
		each  ledger.Counts
		edit  func(r *ledger.Record) // of the first client
	}{
		{shard.CountByNumber, ledger.Counts{Received: 50}, unnumbered},
		{shard.CountByNumber, ledger.Counts{Corrupted: 100, Unnumbered: 99}, func(*ledger.Record) {}},
		{shard.CountByNumber, ledger.Counts{Heartbeats: 5}, dropped},
		{shard.CountNothing, ledger.Counts{Heartbeats: 5}, dropped},
	} {
		m := describedRun(c.basis, c.each)
		m.Plan.RequireMessages = true
		c.edit(&m.Connections.Edit(0).Record)
		requireOutcome(t, Fail, judgeSoak(m, nil, Evidence{}), c.basis, c.each)
	}
}

func TestChecksWithoutEvidenceAreNotJudged(t *testing.T) {
	t.Parallel()
	refused, server := cleanRun()
	refused.Plan.Reconnect = true
	for i := range refused.Connections.Len() {
		c := refused.Connections.Edit(i)
		c.Record = ledger.Record{ID: c.ID, State: ledger.Refused, Reason: "status 404", Attempts: 1, ClosedAt: c.ClosedAt}
		addFault(&c.Record, ledger.KindRefused, 1)
	}
	silent, _ := cleanRun()
	for i := range silent.Connections.Len() {
		r := &silent.Connections.Edit(i).Record
		r.Received, r.Last, r.Numbered, r.StreamTime, r.OpenTime = 0, 0, false, 0, 0
	}
	for name, c := range map[string]struct {
		m       *shard.Merged
		ledger  ServerLedger
		want    Outcome
		decided []string
	}{
		"all refused": {refused, server, Fail, []string{
			"data complete", "clients connected", "streams open to the end", "script checks", "load generator on time", "noops checked",
		}},
		"nothing sent": {silent, nil, Invalid, []string{
			"data complete", "clients connected", "streams open to the end", "script checks", "load generator on time", "noops checked",
			"noops expected per client",
		}},
	} {
		v := requireOutcome(t, c.want, judgeSoak(c.m, c.ledger, Evidence{}), name)
		var decided []string
		for _, result := range v.Checks {
			if result.State() != NotJudged {
				decided = append(decided, result.Name)
				continue
			}
			require.False(t, result.Pass, result.Name)
			require.True(t, strings.HasPrefix(result.Actual, "not judged: "), result.Name+": "+result.Actual)
		}
		require.ElementsMatch(t, c.decided, decided, name)
	}
}

func TestOpenTimeExcludesDroppedClients(t *testing.T) {
	t.Parallel()
	m, _ := cleanRun()
	for i := range 2 {
		r := &m.Connections.Edit(i).Record
		r.State, r.Reason, r.StreamTime, r.OpenTime = ledger.Dropped, "reset", 0, 0
	}
	c := check(t, judgeSoak(m, nil, Evidence{}), "connected time")
	require.Equal(t, Met, c.State())
	require.Equal(t, "at least 100 % for 1 of 3 clients; the others had no stream open to the end, or were not observed to the end", c.Actual)
}
