package verdict

import (
	"fmt"
	"slices"
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

// A client that reconnects right before the end of the run cannot receive all messages that it missed. If a short
// stream was open in between, the messages that were published over a second before its end are expected.
func TestLateReconnectExpectsNoReplay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shortAt     time.Duration // when a stream of 0.3 s opens; 0: never
		reconnect   time.Duration // when the last stream opens
		missed      uint64
		notExpected uint64
	}{
		"for half a second":                   {0, 24500 * time.Millisecond, 0, 10},
		"for two seconds":                     {0, 23 * time.Second, 10, 0},
		"for a moment, and for two seconds":   {15 * time.Second, 23 * time.Second, 10, 0},
		"for a moment, and for half a second": {15 * time.Second, 24500 * time.Millisecond, 4, 6}, // messages 11 to 14 are expected: they were published over a second before the short stream ended
	} {
		p := newPublishedRun()
		p.drop(10500*time.Millisecond, func(l *ledger.Ledger) {
			if c.shortAt > 0 {
				reopen(l, c.shortAt, c.shortAt, true)
				l.Closed(c.shortAt+300*time.Millisecond, "server", true, true)
			}
			reopen(l, c.reconnect, c.reconnect, true)
		})
		p.lose(func(stream int, number uint64) bool { return stream == 0 && number > 10 })
		p.plan.MaxOutageS = -1
		v := p.judge(t)
		require.Equal(t, c.missed, v.Messages.Missed, name)
		require.Equal(t, c.notExpected, v.Messages.NotExpected, name)
	}
}

// The clocks of two machines differ. The delay of the fastest message bounds the difference, and extends the margin at
// both ends of a stream. A message that is missing in the middle is still lost.
func TestClockDifferenceExtendsTheMargin(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-5 * time.Second, 5 * time.Second} {
		p := newPublishedRun()
		p.at[1] = p.at[0].Add(skew)
		v := requireOutcome(t, Pass, p.judge(t))
		require.EqualValues(t, 80, v.Messages.Received)
		p = newPublishedRun()
		p.at[1] = p.at[0].Add(skew)
		p.lose(func(stream int, number uint64) bool { return stream == 1 && number == 12 })
		require.EqualValues(t, 1, p.judge(t).Messages.Missed)
	}
}

// The publish time in messages may come from the service, whose clock may be wrong. If the publisher is on the same
// machine, a wrong clock of the service does not change which messages are expected. If the publisher is on another
// machine, the margins may be so long that losses are undecided.
func TestWrongClockDoesNotHideLosses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		skew  time.Duration
		hosts [2]string
	}{
		"one machine, 20 s":  {20 * time.Second, [2]string{"a", "a"}},
		"one machine, -1 h":  {-time.Hour, [2]string{"a", "a"}},
		"two machines, 20 s": {20 * time.Second, [2]string{"a", "b"}},
		"two machines, 3 s":  {3 * time.Second, [2]string{"a", "b"}},
	} {
		p := newPublishedRun()
		p.lose(func(stream int, number uint64) bool { return stream <= 1 && number == 12 })
		p.change = func(shards []*shard.Shard) {
			for i, s := range shards {
				s.Runner.Host = c.hosts[i]
				s.Latency.MinUS += c.skew.Microseconds()
			}
		}
		v := requireOutcome(t, Fail, p.judge(t), name)
		require.EqualValues(t, 2, v.Messages.Missed, name)
		require.Zero(t, v.Evidence.Undetectable, name)
	}
	p := newPublishedRun()
	p.lose(func(stream int, number uint64) bool { return stream == 1 && number == perTopic })
	p.change = func(shards []*shard.Shard) { shards[1].Latency.MinUS += time.Hour.Microseconds() }
	v := requireOutcome(t, Invalid, p.judge(t))
	require.Contains(t, fmt.Sprint(v.Reasons), "clocks of two machines")
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

// A service that delivers everything, but 6 s late, has not lost the last messages.
func TestMessagesInFlightAtTheEndAreNotLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost    func(number uint64) bool // to stream 0
		missed  uint64
		pending uint64 // on all 4 streams
		want    Outcome
	}{
		"none lost":           {func(uint64) bool { return false }, 0, 8, Invalid}, // 19 and 20 to each stream
		"one in the middle":   {func(n uint64) bool { return n == 12 }, 1, 8, Fail},
		"all after the fifth": {func(n uint64) bool { return n > 5 }, 11, 4 + 6, Fail}, // stream 0: 17 to 20, sent in the last 9 s
		"all":                 {func(uint64) bool { return true }, 19, 6, Fail},        // no message shows the delay of stream 0
	} {
		p := newPublishedRun()
		p.delay = 6 * time.Second
		p.lose(func(stream int, number uint64) bool { return stream == 0 && c.lost(number) })
		p.change = func(shards []*shard.Shard) { shards[1].Runner.Host = shards[0].Runner.Host }
		v := requireOutcome(t, c.want, p.judge(t), name)
		require.Equal(t, c.missed, v.Messages.Missed, name)
		require.Equal(t, c.pending, v.Evidence.Undetectable, name)
		require.Contains(t, v.Evidence.Why[0], "may still have been in transit at the end of the run: messages took up to 6 s to arrive", name)
	}
}

// A buffer that delivers all messages of the last 6 s at once also delays the oldest of them by 6 s.
func TestMessagesInABufferAtTheEndAreNotLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		followers int // of 10 messages
		lost      []uint64
		missed    uint64 // on all 4 streams
		pending   uint64
		want      Outcome
	}{
		"in the buffer":               {9, []uint64{18, 19, 20}, 0, 4 * 3, Invalid},
		"in the buffer, and lost":     {9, []uint64{9, 18, 19, 20}, 4, 4 * 3, Fail},
		"before the last full buffer": {9, []uint64{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 22, 18, Fail},
		"no buffer":                   {1, []uint64{18, 19, 20}, 4 * 3, 0, Fail},
	} {
		p := newPublishedRun()
		p.lose(func(_ int, number uint64) bool { return slices.Contains(c.lost, number) })
		p.changeEach(func(s *shard.Shard) {
			s.Bursts = shard.NewBursts()
			var silence uint32
			for range 10 - c.followers {
				s.Bursts.Add(6*time.Second, &silence)
			}
			for range c.followers {
				s.Bursts.Add(time.Microsecond, &silence)
			}
		})
		v := requireOutcome(t, c.want, p.judge(t), name)
		require.Equal(t, c.missed, v.Messages.Missed, name)
		require.Equal(t, c.pending, v.Evidence.Undetectable, name)
	}
}

// A corrupted message replaces at most one message that is missing at that time. An extra copy replaces none.
func TestCorruptedMessageDoesNotHideLosses(t *testing.T) {
	t.Parallel()
	const at, lost = 5, 12
	for name, c := range map[string]struct {
		anyOrder  bool
		corrupted []uint64 // delivered in place of message at
		at        uint64
		missed    uint64
	}{
		"an extra copy":                   {false, []uint64{at, 0}, at, 1},
		"in any order":                    {true, []uint64{at, 0}, at, 1},
		"in place of another":             {false, []uint64{0}, at, 1},
		"in place of another, any order":  {true, []uint64{0}, at, 1},
		"the lost one itself":             {false, []uint64{0}, lost, 0},
		"the lost one itself, any order":  {true, []uint64{0}, lost, 0},
		"the first":                       {false, []uint64{0}, 1, 1},
		"an extra one right after a loss": {false, []uint64{0, at}, at, 1},
	} {
		p := newPublishedRun()
		p.cfg.AnyOrder = c.anyOrder
		changes := map[uint64][]uint64{lost: nil}
		changes[c.at] = c.corrupted
		p.deliver = replaceMessages(0, changes)
		p.changeEach(func(s *shard.Shard) { s.Service.AnyOrder = c.anyOrder })
		v := p.judge(t)
		require.Equal(t, c.missed, v.Messages.Missed, name)
		require.EqualValues(t, 1, v.Messages.Corrupted, name)
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
