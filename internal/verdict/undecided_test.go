package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A message is undecided if it is unknown whether it was expected, or whether it arrived. If the loss of most messages
// is undetectable, the run is invalid, even if all of them arrived.
func TestUndecidedMessages(t *testing.T) {
	t.Parallel()
	// The service ended a stream as planned. The client requested the next one at the given time, without an answer.
	unanswered := func(at time.Duration, resume string) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.cfg.Lifetime = 10 * time.Second
			p.drop(14900*time.Millisecond, func(l *ledger.Ledger) { l.Connecting(at) })
			p.lose(func(stream int, number uint64) bool { return stream == 0 && number >= 15 })
			p.changeEach(func(s *shard.Shard) { s.Service.Resume = resume })
		}
	}
	// The service confirmed the last message only after the streams had ended.
	lateConfirmation := func(lost int) func(p *publishedRun) { // lost: the stream that does not receive it
		return func(p *publishedRun) {
			p.answer = func(number uint64) time.Duration {
				return map[bool]time.Duration{false: 3 * time.Millisecond, true: 6 * time.Second}[number == perTopic]
			}
			p.lose(func(stream int, number uint64) bool { return stream == lost && number == perTopic })
		}
	}
	// Each stream of client 1 ends after 1.9 s and two messages.
	shortStreams := func(lost func(number uint64) bool) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.lose(func(stream int, number uint64) bool { return stream == 1 && lost(number) })
			p.beforeMessage = func(stream int, number uint64, l *ledger.Ledger) {
				if at := time.Duration(number) * time.Second; stream == 1 && number%2 == 0 {
					l.Closed(at, "server", true, true)
					l.Connecting(at)
					l.Opened(at + 100*time.Millisecond)
				}
			}
		}
	}
	const fewChecked = "1 client could have missed most messages unnoticed (s-1, 0 of 20 messages of topic s-topic-1 checked): " +
		"streams were open for 2.14 s on average; publish at least 6 messages per second (PUBLISH_RATE), so that each stream receives 6"
	judgePublished(t, []publishedCase{
		{"the service does not answer a reconnect", unanswered(16*time.Second, "Last-Event-ID"), Invalid, [4]uint64{0, 0, 0, 6},
			"the service had left the reconnect attempts of 1 client unanswered for over 1 s when the run ended"},
		{"the reconnect is 1 s before the end", unanswered(24*time.Second+1, "Last-Event-ID"), Pass, [4]uint64{0, 0, 0, 6}, ""},
		{"the service does not resume", unanswered(16*time.Second, "none"), Pass, [4]uint64{0, 0, 6, 0}, ""},
		{"confirmed late, and all arrived", lateConfirmation(-1), Pass, [4]uint64{}, ""},
		{"confirmed late, and one did not arrive", lateConfirmation(2), Invalid, [4]uint64{0, 0, 0, 1}, ""},
		{"short streams, and none is lost", shortStreams(func(uint64) bool { return false }), Invalid, [4]uint64{}, fewChecked},
		{"short streams, and most are lost", shortStreams(func(number uint64) bool { return number > 3 }), Invalid, [4]uint64{0, 0, 17, 0}, fewChecked},
		{"short streams, and a quarter are lost", shortStreams(func(number uint64) bool { return number%4 == 3 }), Invalid, [4]uint64{0, 0, 5, 0}, fewChecked},
		{"the first one is lost, 0.5 s after the headers", func(p *publishedRun) {
			p.lose(func(_ int, number uint64) bool { return number == 1 })
		}, Pass, [4]uint64{0, 0, 4, 0}, "; 4 more did not arrive and were not expected"},
		{"messages have no marker", func(p *publishedRun) {
			p.changeEach(func(s *shard.Shard) { s.Service.Unmarked = true })
		}, Invalid, [4]uint64{0, 0, 0, 4 * perTopic}, "messages have no marker of run and topic (message.run)"},
		{"others publish", func(p *publishedRun) {
			p.cfg.Published, p.plan.Topics, p.plan.PublishRate = false, 0, 0
			p.change = func(shards []*shard.Shard) { shards[0].Published = nil }
		}, Pass, [4]uint64{0, 0, 0, 8}, "no message is known to be missing; losses before the first and after the last one of a stream are undetectable"},
		{"the service replays messages of an earlier run", func(p *publishedRun) {
			p.shape = func(stream int, l *ledger.Ledger) {
				for number := range uint64(perTopic) {
					if stream == 1 {
						l.Delivered(&ledger.Delivery{At: time.Second, Number: number + 1})
					}
				}
			}
			p.lose(func(stream int, _ uint64) bool { return stream == 1 })
		}, Invalid, [4]uint64{}, "s-1 received message 20 of topic s-topic-1 before it was published: the message is from another run with the same marker (t-1)"},
	})
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
