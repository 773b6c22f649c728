package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestPublishedMessagesAreExpected(t *testing.T) {
	t.Parallel()
	v := newPublishedRun().judge(t)
	require.Equal(t, Pass, v.Verdict, v.Reasons)
	require.EqualValues(t, 4*perTopic, v.Messages.Received)
	require.Equal(t, ByPublisher, v.Evidence.Kind)
	require.Zero(t, v.Evidence.Undetectable)
	require.EqualValues(t, 2*perTopic, v.Messages.Published.Confirmed)
	require.Len(t, v.Messages.Topics, 2)
	require.EqualValues(t, 2*perTopic, v.Messages.Topics[1].Received)
	require.EqualValues(t, 4*19, v.Messages.Checked)
}

func TestEachFaultIsCountedOnce(t *testing.T) {
	t.Parallel()
	const at = 7
	all, copies := map[uint64][]uint64{}, map[uint64][]uint64{}
	for number := uint64(1); number <= perTopic; number++ {
		all[number], copies[number] = nil, []uint64{number, 0}
	}
	for _, c := range []struct {
		name    string
		changes map[uint64][]uint64 // on stream 2
		want    ledger.Totals
		reason  string
	}{
		{"one in the middle is missing", map[uint64][]uint64{at: nil}, ledger.Totals{Received: 79, Missed: 1, Expected: 80}, "s-2 missed message 7 of topic s-topic-0, published at 22:13:27.000 UTC and confirmed by the service"},
		{"the last is missing", map[uint64][]uint64{perTopic: nil}, ledger.Totals{Received: 79, Missed: 1, Expected: 80}, "s-2 missed message 20 of topic s-topic-0"},
		{"the first is missing, but was not expected", map[uint64][]uint64{1: nil}, ledger.Totals{Received: 79, Missed: 0, Expected: 79}, ""}, // 0.5 s after the headers
		{"the first two are missing, and one of them was expected", map[uint64][]uint64{1: nil, 2: nil}, ledger.Totals{Received: 78, Missed: 1, Expected: 79}, "s-2 missed message 2 of topic s-topic-0"},
		{"all are missing", all, ledger.Totals{Received: 60, Missed: 19, Expected: 79}, "s-2 missed messages 2 to 20 of topic s-topic-0"},
		{"two in a row are missing", map[uint64][]uint64{9: nil, 10: nil}, ledger.Totals{Received: 78, Missed: 2, Expected: 80}, "s-2 missed messages 9 and 10 of topic s-topic-0"},
		{"one arrives twice", map[uint64][]uint64{at: {at, at}}, ledger.Totals{Received: 80, Duplicated: 1, Expected: 80}, "s-2 received message 7 of topic s-topic-0 twice"},
		{"the numbers go back on the open stream", map[uint64][]uint64{at: {at, 1}}, ledger.Totals{Received: 80, Duplicated: 1, Expected: 80}, "s-2 received message 1 of topic s-topic-0 twice, the second time at 22:13:27.002 UTC after message 7"},
		{"two are swapped", map[uint64][]uint64{at: nil, at + 1: {at + 1, at}}, ledger.Totals{Received: 80, Reordered: 1, Expected: 80}, "s-2 received message 7 of topic s-topic-0 out of order"},
		{"one that was not published", map[uint64][]uint64{perTopic: {perTopic, perTopic + 1}}, ledger.Totals{Received: 80, Corrupted: 1, Expected: 81}, "it was never published"},
		{"a corrupted one follows each, more than a ledger lists", copies, ledger.Totals{Received: 80, Corrupted: 20, Expected: 100}, "no JSON"},
		{"a corrupted one follows the last", map[uint64][]uint64{perTopic: {perTopic, 0}}, ledger.Totals{Received: 80, Corrupted: 1, Expected: 81}, "no JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPublishedRun()
			p.deliver = replaceMessages(2, c.changes)
			v := p.judge(t)
			require.Equal(t, c.want, v.Messages.Totals)
			if c.reason == "" {
				require.Equal(t, Pass, v.Verdict, v.Reasons)
				return
			}
			require.Equal(t, Fail, v.Verdict)
			require.Contains(t, v.Reasons[0], c.reason)
		})
	}
}

// The note of the finding describes the fault and has no data of the message.
func TestFaultOfANumberedMessageIsNotQuoted(t *testing.T) {
	t.Parallel()
	for want, last := range map[string][]uint64{"it was never published": {perTopic, perTopic + 1}, "no JSON": {0}} {
		p := newPublishedRun()
		p.deliver = replaceMessages(2, map[uint64][]uint64{perTopic: last})
		p.changeEach(func(s *shard.Shard) { s.Service.Data = "tick" })
		v := requireOutcome(t, Fail, p.judge(t))
		require.Regexp(t, "UTC: "+want+"$", v.Reasons[0])
	}
}

// A publishedCase is a change of a run with a publisher, with the outcome and the counts of the run.
type publishedCase struct {
	name   string
	change func(p *publishedRun)
	want   Outcome
	counts [4]uint64 // missed, corrupted, not expected, undetectable
	reason string    // in the reasons or warnings
}

func judgePublished(t *testing.T, cases []publishedCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPublishedRun()
			c.change(p)
			v := requireOutcome(t, c.want, p.judge(t))
			m := &v.Messages
			require.Equal(t, c.counts, [4]uint64{m.Missed, m.Corrupted, m.NotExpected, v.Evidence.Undetectable})
			require.Contains(t, strings.Join(append(v.Reasons, v.Warnings...), "\n"), c.reason)
		})
	}
}

// A client that reconnects right before the end of the run cannot receive all messages that it missed. If a short
// stream was open in between, the messages that were published over a second before its end are expected.
func TestLateReconnectExpectsNoReplay(t *testing.T) {
	t.Parallel()
	reconnect := func(shortAt, reconnect time.Duration) func(p *publishedRun) { // shortAt: when a stream of 0.3 s opens; 0: never
		return func(p *publishedRun) {
			p.drop(10500*time.Millisecond, func(l *ledger.Ledger) {
				if shortAt > 0 {
					reopen(l, shortAt, shortAt, true)
					l.Closed(shortAt+300*time.Millisecond, "server", true, true)
				}
				reopen(l, reconnect, reconnect, true)
			})
			p.lose(func(stream int, number uint64) bool { return stream == 0 && number > 10 })
			p.plan.MaxOutageS = -1
		}
	}
	judgePublished(t, []publishedCase{
		{"for half a second", reconnect(0, 24500*time.Millisecond), Fail, [4]uint64{0, 0, 10, 0}, ""},
		{"for two seconds", reconnect(0, 23*time.Second), Fail, [4]uint64{10, 0, 0, 0}, ""},
		{"for a moment, and for two seconds", reconnect(15*time.Second, 23*time.Second), Fail, [4]uint64{10, 0, 0, 0}, ""},
		// Messages 11 to 14 are expected: they were published over a second before the short stream ended.
		{"for a moment, and for half a second", reconnect(15*time.Second, 24500*time.Millisecond), Fail, [4]uint64{4, 0, 6, 0}, ""},
	})
}

// The clocks of two machines differ. The delay of the fastest message bounds the difference, and extends the margin at
// both ends of a stream. A message that is missing in the middle is still lost. The publish time in messages may come
// from the service, whose clock may be wrong. If the publisher is on the same machine, that does not change which
// messages are expected. If it is on another machine, the margins may be so long that losses are undecided.
func TestClocks(t *testing.T) {
	t.Parallel()
	differ := func(skew time.Duration, lost uint64) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.at[1] = p.at[0].Add(skew)
			p.lose(func(stream int, number uint64) bool { return stream == 1 && number == lost })
		}
	}
	wrong := func(skew time.Duration, secondHost string) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.lose(func(stream int, number uint64) bool { return stream <= 1 && number == 12 })
			p.change = func(shards []*shard.Shard) {
				shards[1].Runner.Host = secondHost
				for _, s := range shards {
					s.Latency.MinUS += skew.Microseconds()
				}
			}
		}
	}
	judgePublished(t, []publishedCase{
		{"the second one is 5 s slow", differ(-5*time.Second, 0), Pass, [4]uint64{}, ""},
		{"the second one is 5 s slow, and a message is lost", differ(-5*time.Second, 12), Fail, [4]uint64{1, 0, 0, 0}, ""},
		{"the second one is 5 s fast", differ(5*time.Second, 0), Pass, [4]uint64{}, ""},
		{"the second one is 5 s fast, and a message is lost", differ(5*time.Second, 12), Fail, [4]uint64{1, 0, 0, 0}, ""},
		{"one machine, 20 s", wrong(20*time.Second, "host-0"), Fail, [4]uint64{2, 0, 0, 0}, ""},
		{"one machine, -1 h", wrong(-time.Hour, "host-0"), Fail, [4]uint64{2, 0, 0, 0}, ""},
		{"two machines, 20 s", wrong(20*time.Second, "host-1"), Fail, [4]uint64{2, 0, 0, 0}, ""},
		{"two machines, 3 s", wrong(3*time.Second, "host-1"), Fail, [4]uint64{2, 0, 0, 0}, ""},
		{"two machines, 1 h, and the last message is lost", func(p *publishedRun) {
			p.lose(func(stream int, number uint64) bool { return stream == 1 && number == perTopic })
			p.change = func(shards []*shard.Shard) { shards[1].Latency.MinUS += time.Hour.Microseconds() }
		}, Invalid, [4]uint64{0, 0, 0, 1}, "clocks of two machines"},
	})
}

// A service that delivers everything, but 6 s late, has not lost the last messages. A buffer that delivers all messages
// of the last 6 s at once also delays the oldest of them by 6 s.
func TestMessagesInTransitAtTheEndAreNotLost(t *testing.T) {
	t.Parallel()
	late := func(lost func(number uint64) bool) func(p *publishedRun) { // to stream 0
		return func(p *publishedRun) {
			p.delay = 6 * time.Second
			p.lose(func(stream int, number uint64) bool { return stream == 0 && lost(number) })
			p.change = func(shards []*shard.Shard) { shards[1].Runner.Host = shards[0].Runner.Host }
		}
	}
	buffered := func(followers int, lost ...uint64) func(p *publishedRun) { // followers: of 10 messages; lost: on all 4 streams
		return func(p *publishedRun) {
			p.lose(func(_ int, number uint64) bool { return slices.Contains(lost, number) })
			p.changeEach(func(s *shard.Shard) {
				s.Bursts = shard.NewBursts()
				var silence uint32
				for i := range 10 {
					after := 6 * time.Second
					if i >= 10-followers {
						after = time.Microsecond
					}
					s.Bursts.Add(after, &silence)
				}
			})
		}
	}
	const reason = "may still have been in transit at the end of the run: messages took up to 6 s to arrive"
	judgePublished(t, []publishedCase{
		{"none lost", late(func(uint64) bool { return false }), Invalid, [4]uint64{0, 0, 0, 8}, reason}, // 19 and 20 to each stream
		{"one in the middle lost", late(func(n uint64) bool { return n == 12 }), Fail, [4]uint64{1, 0, 0, 8}, reason},
		{"all after the fifth lost", late(func(n uint64) bool { return n > 5 }), Fail, [4]uint64{11, 0, 0, 4 + 6}, reason}, // stream 0: 17 to 20, sent in the last 9 s
		{"all lost", late(func(uint64) bool { return true }), Fail, [4]uint64{19, 0, 1, 6}, reason},                        // no message shows the delay of stream 0
		{"in the buffer", buffered(9, 18, 19, 20), Invalid, [4]uint64{0, 0, 0, 4 * 3}, ""},
		{"in the buffer, and lost", buffered(9, 9, 18, 19, 20), Fail, [4]uint64{4, 0, 0, 4 * 3}, ""},
		{"before the last full buffer", buffered(9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20), Fail, [4]uint64{22, 0, 0, 18}, ""},
		{"no buffer", buffered(1, 18, 19, 20), Fail, [4]uint64{4 * 3, 0, 0, 0}, ""},
	})
}

// A corrupted message replaces at most one message that is missing at that time. An extra copy replaces none.
func TestCorruptedMessageDoesNotHideLosses(t *testing.T) {
	t.Parallel()
	const position, lost = 5, 12
	deliver := func(anyOrder bool, at uint64, numbers ...uint64) func(p *publishedRun) { // numbers are delivered in place of message at
		return func(p *publishedRun) {
			p.cfg.AnyOrder = anyOrder
			changes := map[uint64][]uint64{lost: nil}
			changes[at] = numbers
			p.deliver = replaceMessages(0, changes)
			p.changeEach(func(s *shard.Shard) { s.Service.AnyOrder = anyOrder })
		}
	}
	judgePublished(t, []publishedCase{
		{"an extra copy", deliver(false, position, position, 0), Fail, [4]uint64{1, 1, 0, 0}, ""},
		{"in any order", deliver(true, position, position, 0), Fail, [4]uint64{1, 1, 0, 0}, ""},
		{"in place of another", deliver(false, position, 0), Fail, [4]uint64{1, 1, 0, 0}, ""},
		{"in place of another, any order", deliver(true, position, 0), Fail, [4]uint64{1, 1, 0, 0}, ""},
		{"the lost one itself", deliver(false, lost, 0), Fail, [4]uint64{0, 1, 0, 0}, ""},
		{"the lost one itself, any order", deliver(true, lost, 0), Fail, [4]uint64{0, 1, 0, 0}, ""},
		{"the first", deliver(false, 1, 0), Fail, [4]uint64{1, 1, 1, 0}, ""},
		{"an extra one right after a loss", deliver(false, position, 0, position), Fail, [4]uint64{1, 1, 0, 0}, ""},
	})
}

// A message of another topic fails the run, because it reached the wrong client, even if no message is missing.
func TestMessageOfAnotherTopicFails(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.shape = func(stream int, l *ledger.Ledger) {
		if stream == 2 {
			l.Misrouted(9*time.Second, "{}")
			l.Misrouted(11*time.Second, "{}")
		}
	}
	v := requireOutcome(t, Fail, p.judge(t))
	require.Equal(t, "FAIL: 2 messages received from other topics; first fault at 22:13:29 UTC", v.Summary())
	require.Equal(t, []string{"s-2 received 2 messages of other topics, from 22:13:29 to 22:13:31 UTC; first: s-2 received a message of another topic at 22:13:29.000 UTC: {}"}, v.Reasons)
	require.EqualValues(t, 2, v.Messages.Misrouted)
	require.EqualValues(t, 4*perTopic, v.Messages.Received)
}

// A client without an id cannot resume. Messages that it misses during the outage are lost if the service reset the id.
// Otherwise they are not expected. In both cases the effect of the action that ended the stream counts these messages.
func TestClientWithoutAnIDCannotResume(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resumes    bool
		ids        func(l *ledger.Ledger) // before the stream ends
		want       Outcome
		reason     string
		missed     uint64
		notResumed uint64
	}{
		"the service resets the id": {true, func(l *ledger.Ledger) { l.IDReceived(); l.IDReset(9500*time.Millisecond, `heartbeat "ping"`) }, Fail,
			`s-0 had no id to resume from: the service reset it at 22:13:29.500 UTC with an empty id field in the heartbeat "ping", after message 9 of topic s-topic-0`, 3, 0},
		"no message has an id": {true, func(*ledger.Ledger) {}, Invalid,
			"s-0 had no id to resume from at 22:13:33.000 UTC: the service had sent none write resume: { by: 'none' } in the description if the service does not resume streams", 0, 3},
		"the service does not resume streams": {false, func(*ledger.Ledger) {}, Pass, "; 3 more did not arrive and were not expected", 0, 3},
	} {
		p := newPublishedRun()
		p.cfg.Resumes = c.resumes
		p.drop(9900*time.Millisecond, func(l *ledger.Ledger) { reopen(l, 12*time.Second, 13*time.Second, false) })
		drop := p.shape
		p.shape = func(stream int, l *ledger.Ledger) {
			c.ids(l)
			drop(stream, l)
		}
		p.lose(func(stream int, number uint64) bool { return stream == 0 && number >= 10 && number <= 12 })
		p.actions = []ActionResult{actionAt("deploy", 9.8, .1)}
		v := requireOutcome(t, c.want, p.judge(t), name)
		require.Contains(t, fmt.Sprint(v.Reasons), c.reason, name)
		require.Equal(t, c.missed, v.Messages.Missed, name)
		require.Equal(t, [2]uint64{c.missed, c.notResumed}, [2]uint64{v.Actions[0].Effect.Missed, v.Actions[0].Effect.NotResumed}, name)
	}
}

// Among compared clients, the arrival at another client shows when a message was sent.
func TestCorruptedMessageMayArriveEarlierThanAtOtherClients(t *testing.T) {
	t.Parallel()
	sent := time.UnixMicro(1_700_000_000_000_000)
	for _, c := range []struct {
		tolerance, delay time.Duration
		want             bool
	}{
		{0, time.Millisecond, true},
		{0, -time.Millisecond, false},
		{arrivalSpread, -time.Millisecond, true},
		{arrivalSpread, -time.Second, false},
	} {
		a := account{messages: []shard.Message{{SentUS: sent.UnixMicro()}}, margin: streamMargin, tolerance: c.tolerance}
		require.Equal(t, c.want, a.couldBe(1, sent.Add(c.delay)), "%+v", c)
	}
}
