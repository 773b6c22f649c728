package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// If a service ended a stream as planned and then answered no request, it is unknown whether it kept the messages
// published meanwhile. If the client requested the next stream only a moment before the end, the run can pass.
func TestUnansweredReconnectAtTheEndDoesNotPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait   time.Duration
		resume string
		want   Outcome
	}{
		"the service does not answer":       {16 * time.Second, "Last-Event-ID", Invalid},
		"the request is 1 s before the end": {24*time.Second + 1, "Last-Event-ID", Pass},
		"the service does not resume":       {16 * time.Second, "none", Pass},
	} {
		p := newPublishedRun()
		p.cfg.Lifetime = 10 * time.Second
		p.drop(14900*time.Millisecond, func(l *ledger.Ledger) { l.Connecting(c.wait) })
		p.lose(func(stream int, number uint64) bool { return stream == 0 && number >= 15 })
		p.changeEach(func(s *shard.Shard) { s.Service.Resume = c.resume })
		v := requireOutcome(t, c.want, p.judge(t), name)
		require.Equal(t, 4, v.Connections.Completed, name)
		if c.want == Invalid {
			require.Contains(t, v.Reasons[0], "the service had left the reconnect attempts of 1 client unanswered for over 1 s when the run ended", name)
		}
		if c.resume == "none" {
			require.EqualValues(t, 6, v.Messages.NotExpected, name)
		} else {
			require.EqualValues(t, 6, v.Evidence.Undetectable, name)
		}
	}
}

// A message that was confirmed only after a stream had ended may have been in transit, or lost, so it is undecided.
func TestLateConfirmationIsUndecided(t *testing.T) {
	t.Parallel()
	late := func(number uint64) time.Duration {
		if number == perTopic {
			return 6 * time.Second
		}
		return 3 * time.Millisecond
	}
	p := newPublishedRun()
	p.answer = late
	requireOutcome(t, Pass, p.judge(t), "all arrived")
	p = newPublishedRun()
	p.answer = late
	p.lose(func(stream int, number uint64) bool { return stream == 2 && number == perTopic })
	v := requireOutcome(t, Invalid, p.judge(t))
	require.EqualValues(t, 1, v.Evidence.Undetectable)
}

// shortStreams ends each stream of client 1 after 1.9 s and two messages.
func shortStreams(stream int, number uint64, l *ledger.Ledger) {
	if at := time.Duration(number) * time.Second; stream == 1 && number%2 == 0 {
		l.Closed(at, "server", true, true)
		l.Connecting(at)
		l.Opened(at + 100*time.Millisecond)
	}
}

// If the loss of most messages is undetectable, the run is invalid, even if all of them arrived.
func TestRunWithFewCheckedMessagesIsInvalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost        func(number uint64) bool
		notExpected uint64
	}{
		"none is lost":       {func(uint64) bool { return false }, 0},
		"most are lost":      {func(number uint64) bool { return number > 3 }, 17},
		"a quarter are lost": {func(number uint64) bool { return number%4 == 3 }, 5},
	} {
		p := newPublishedRun()
		p.lose(func(stream int, number uint64) bool { return stream == 1 && c.lost(number) })
		p.beforeMessage = shortStreams
		v := requireOutcome(t, Invalid, p.judge(t), name)
		require.Equal(t, []string{"1 client could have missed most messages unnoticed (s-1, 0 of 20 messages of topic s-topic-1 checked): " +
			"streams were open for 2.14 s on average; publish at least 6 messages per second (PUBLISH_RATE), so that each stream receives 6"}, v.Reasons, name)
		require.Equal(t, c.notExpected, v.Messages.NotExpected, name)
	}

	p := newPublishedRun()
	p.lose(func(_ int, number uint64) bool { return number == 1 }) // 0.5 s after the headers
	v := requireOutcome(t, Pass, p.judge(t))
	require.Contains(t, v.Reasons[0], "; 4 more did not arrive and were not expected")
	require.EqualValues(t, 4*19, v.Messages.Checked)
}

// A message without a marker may be of another topic, or of an earlier run.
func TestMessagesWithoutAMarkerAreUndecided(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.changeEach(func(s *shard.Shard) { s.Service.Unmarked = true })
	v := requireOutcome(t, Invalid, p.judge(t))
	require.EqualValues(t, 4*perTopic, v.Evidence.Undetectable)
	require.Contains(t, v.Reasons[0], "messages have no marker of run and topic (message.run)")
}

// With an external publisher, it is unknown whether messages were sent before the first or after the last one that a
// stream received.
func TestLossesAtTheEndsAreUnknownWithoutAPublisher(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.cfg.Published, p.plan.Topics, p.plan.PublishRate = false, 0, 0
	p.change = func(shards []*shard.Shard) { shards[0].Published = nil }
	v := requireOutcome(t, Pass, p.judge(t))
	require.Equal(t, "no message is known to be missing; losses before the first and after the last one of a stream are undetectable", v.Reasons[0])
}

// A service with a history may replay messages of an earlier run with the same marker. If a message arrives before this
// run has published its number, the run is invalid.
func TestMessagesOfAnEarlierRunAreUndecided(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.shape = func(stream int, l *ledger.Ledger) {
		if stream != 1 {
			return
		}
		for number := range uint64(perTopic) {
			l.Delivered(&ledger.Delivery{At: time.Second, Number: number + 1})
		}
	}
	p.lose(func(stream int, number uint64) bool { return stream == 1 })
	v := requireOutcome(t, Invalid, p.judge(t))
	require.Equal(t, []string{"s-1 received message 20 of topic s-topic-1 before it was published: the message is from another run with the same marker (t-1)"}, v.Reasons)
}

// The server's ledger has the number of the last message, so with it no loss at the end is undetectable. If it has only
// a count, a duplicate may have replaced a lost message.
func TestUndetectableLosses(t *testing.T) {
	t.Parallel()
	numbered := func(r *ledger.Record) { r.Undetectable = 1 }
	byClock := func(r *ledger.Record) { r.Numbered, r.Last, r.Undetectable = false, 0, 2 }
	withCopies := func(r *ledger.Record) { r.Numbered, r.Last, r.Undetectable, r.PossibleCopies = false, 0, 3, 2 }
	const atTheEnd = "on 3 numbered streams a noop was due right before the end and may have been in transit"
	const withoutIDs = "3 streams had no ids 1, 2, 3 …"
	for _, c := range []struct {
		edit         func(r *ledger.Record) // of each client
		hasLedger    bool
		maxHidden    int
		want         Outcome
		basis        string
		undetectable uint64
		reason       string
	}{
		{numbered, true, -1, Pass, ByServer, 0, "3 streams open to the end"},
		{numbered, false, -1, Invalid, ByNumbers, 3, atTheEnd},
		{numbered, false, 3, Pass, ByNumbers, 3, "up to 3 of 717 could be undetectable losses"},
		{byClock, false, -1, Pass, ByClock, 6, "no noop is known to be missing; up to 6 of 717 could be undetectable losses"},
		{byClock, false, 5, Invalid, ByClock, 6, "up to 6 noops could be undetectable losses (MAX_HIDDEN allows 5): " + withoutIDs},
		{withCopies, true, -1, Pass, ByClock, 6, "up to 6 of 717"},
		{withCopies, true, 0, Invalid, ByClock, 6, withoutIDs},
	} {
		m, server := cleanRun()
		for i := range connections {
			c.edit(&m.Connections.Edit(i).Record)
		}
		if !c.hasLedger {
			server = nil
		}
		m.Plan.MaxHidden = c.maxHidden
		v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}), c)
		require.Equal(t, c.basis, v.Evidence.Kind)
		require.Equal(t, c.undetectable, v.Evidence.Undetectable)
		require.Contains(t, v.Reasons[0], c.reason)
		if c.want == Invalid {
			require.Equal(t, []string{"undetectable losses"}, failedChecks(v))
		}
	}
}
