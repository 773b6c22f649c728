package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A service that ended a stream as planned and then answered nobody may have kept what was published meanwhile, or not. One
// that was asked for the next stream only a moment ago is given the time.
func TestAServiceThatDoesNotAnswerAtTheEndIsNoPass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked  time.Duration
		resume string
		want   Outcome
	}{
		"it does not answer":        {16 * time.Second, "Last-Event-ID", Invalid},
		"it has a moment left":      {24*time.Second + 1, "Last-Event-ID", Pass},
		"it resumes nothing anyway": {16 * time.Second, "none", Pass},
	} {
		p := newPublishedRun()
		p.plan.Reconnect, p.shapeAt, p.cfg.Lifetime = true, 15, 10*time.Second
		p.shape = func(stream int, l *ledger.Ledger) {
			if stream == 0 {
				l.Closed(14900*time.Millisecond, "server", true, true)
				l.Connecting(c.asked)
			}
		}
		p.loses(func(stream int, number uint64) bool { return stream == 0 && number >= 15 })
		p.change = func(shards []*shard.Shard) {
			for _, s := range shards {
				s.Service.Resume = c.resume
			}
		}
		v := p.judge(t)
		require.Equal(t, c.want, v.Verdict, "%s: %v", name, v.Reasons)
		require.Equal(t, 4, v.Connections.Completed, name)
		if c.want == Invalid {
			require.EqualValues(t, 6, v.Evidence.CouldHide, name)
			require.Contains(t, v.Reasons[0], "the service had not answered 1 client that wanted to go on when the run ended, for over 1 s", name)
		} else {
			require.EqualValues(t, 6, v.Messages.NotOwed, name)
		}
	}
}

// A message that was confirmed only after a stream had ended may have been on its way, or lost: it is not decided.
func TestALateConfirmationDecidesNothing(t *testing.T) {
	t.Parallel()
	late := func(number uint64) time.Duration {
		if number == perTopic {
			return 6 * time.Second
		}
		return 3 * time.Millisecond
	}
	p := newPublishedRun()
	p.answer = late
	v := p.judge(t)
	require.Equal(t, Pass, v.Verdict, "all came: %v", v.Reasons)
	p = newPublishedRun()
	p.answer = late
	p.loses(func(stream int, number uint64) bool { return stream == 2 && number == perTopic })
	v = p.judge(t)
	require.Equal(t, Invalid, v.Verdict)
	require.EqualValues(t, 1, v.Evidence.CouldHide)
}

// Where nothing is owed, all can be lost, and a pass would prove nothing.
func TestARunInWhichMostWasNotOwedIsInvalid(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.loses(func(stream int, number uint64) bool { return stream == 1 && number > 3 })
	p.shape = func(stream int, l *ledger.Ledger) {
		if stream != 1 {
			return
		}
		for at := 2 * time.Second; at < 25*time.Second; at += 2 * time.Second { // streams of 1.9 s
			l.Closed(at, "server", true, true)
			l.Connecting(at)
			l.Opened(at + 100*time.Millisecond)
		}
	}
	v := p.judge(t)
	require.Equal(t, Invalid, v.Verdict, v.Reasons)
	require.Equal(t, []string{"s-1 did not get 17 of the 20 messages of topic s-topic-1, and was not owed them: they were published within 1 s of the beginning or the end of a stream, or while there was none"}, v.Reasons)
	require.EqualValues(t, 17, v.Messages.NotOwed)

	p = newPublishedRun()
	p.loses(func(_ int, number uint64) bool { return number == 1 }) // 0.5 s after the headers
	v = p.judge(t)
	require.Equal(t, Pass, v.Verdict, v.Reasons)
	require.Contains(t, v.Reasons[0], "; 4 more did not come, and were not owed")
}

// Without a marker in it a message may be of another topic, or be left over from a run before.
func TestMessagesWithoutAMarkerDecideNothing(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.change = func(shards []*shard.Shard) {
		for _, s := range shards {
			s.Service.Unmarked = true
		}
	}
	v := p.judge(t)
	require.Equal(t, Invalid, v.Verdict)
	require.EqualValues(t, 4*perTopic, v.Evidence.CouldHide)
	require.Contains(t, v.Reasons[0], "messages do not say of which run and topic they are (message.run)")
}

// Where somebody else publishes, a stream on which messages stopped is one to which no more were sent.
func TestNobodyKnowsHowManyAreMissingAtTheEnds(t *testing.T) {
	t.Parallel()
	p := newPublishedRun()
	p.cfg.Published, p.plan.Topics, p.plan.PublishRate = false, 0, 0
	p.change = func(shards []*shard.Shard) { shards[0].Published = nil }
	v := p.judge(t)
	require.Equal(t, Pass, v.Verdict, v.Reasons)
	require.Equal(t, "no message is known to be missing; nobody knows what was sent before the first and after the last one of a stream", v.Reasons[0])
}

// A service with a history brings what a run before published; where that had the same marker it stands in for all.
func TestMessagesOfARunBeforeDecideNothing(t *testing.T) {
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
	p.loses(func(stream int, number uint64) bool { return stream == 1 })
	v := p.judge(t)
	require.Equal(t, Invalid, v.Verdict)
	require.Equal(t, []string{"s-1 had message 20 of topic s-topic-1 before it was published: it is of another run with the same marker (t-1)"}, v.Reasons)
}
