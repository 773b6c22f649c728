package shard

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const startUS = int64(1_700_000_000_000_000)

func topics(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("soak-topic-%d", i))
	}
	return names
}

// publish returns the log of count messages, and the messages that Topic is expected to return, with their exact
// times.
func publish(r *rand.Rand, topicCount, count int, rate float64, lag, answer func() time.Duration) (*PublishLog, [][]Message) {
	l := NewPublishLog(topics(topicCount), rate, startUS, uint64(count))
	want := make([][]Message, topicCount)
	for i := range count {
		topic, sent := i%topicCount, l.Due(uint64(i))+lag().Microseconds()
		o := PublishOutcome{State: Confirmed, SentUS: sent, AtUS: sent + answer().Microseconds()}
		switch r.IntN(50) {
		case 0:
			o.State = Open
		case 1:
			o.State, o.Status, o.Text = Refused, 401, "no token"
		case 2:
			o.State, o.Text = Refused, "connection refused"
		}
		l.Settle(topic, l.Begin(topic, sent), o)
		m := Message{SentUS: sent, AnsweredUS: o.AtUS, Status: o.Status, State: o.State}
		if o.State != Confirmed && o.Status == 0 {
			m.AnsweredUS = 0
		}
		want[topic] = append(want[topic], m)
	}
	return l, want
}

func jitter(r *rand.Rand, from, to time.Duration) func() time.Duration {
	return func() time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
}

func requireSameMessages(t *testing.T, want, got []Message) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		g := got[i]
		require.Equal(t, w.State, g.State)
		require.Equal(t, w.Status, g.Status)
		require.True(t, w.SentUS-unitUS < g.SentUS && g.SentUS <= w.SentUS, "message %d: SentUS is %d, but it was sent at %d", i, g.SentUS, w.SentUS)
		require.True(t, w.AnsweredUS <= g.AnsweredUS && g.AnsweredUS < w.AnsweredUS+2*unitUS, "message %d: AnsweredUS is %d, but it was answered at %d", i, g.AnsweredUS, w.AnsweredUS)
	}
}

func TestPublishedMessagesAreReadExactly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		topics, count int
		rate          float64
		lag, answer   time.Duration
	}{
		{1, 1, 1, time.Second, time.Second},
		{1, 1000, 1000, time.Millisecond, 20 * time.Millisecond},
		{7, 1000, 3.7, time.Hour, 10 * time.Second},
		{1000, 999, 10_000, time.Microsecond, time.Microsecond},
	} {
		l, want := publish(r, c.topics, c.count, c.rate, jitter(r, 0, c.lag), jitter(r, 0, c.answer))
		p := l.Published(true)
		read := rereadPublished(t, p)
		for _, p := range []*Published{p, read} {
			require.EqualValues(t, c.count, p.Messages)
			require.True(t, p.Finished)
			sums := l.Sums()
			require.LessOrEqual(t, p.Sums().MaxLagUS, sums.MaxLagUS)
			require.Greater(t, p.Sums().MaxLagUS+unitUS, sums.MaxLagUS)
			sums.MaxLagUS = p.Sums().MaxLagUS
			require.Equal(t, sums, p.Sums())
			require.EqualValues(t, c.count, p.Lag.Count())
			for i := range c.topics {
				requireSameMessages(t, want[i], p.Topic(i))
			}
		}
		require.Equal(t, p.Failed, read.Failed)
	}
}

func TestHourOfThousandMessagesPerSecondNeedsLessThan6MB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := rand.New(rand.NewPCG(3, 4))
	// A single topic costs less, so a tenth is enough.
	for topicCount, messages := range map[int]int{1: 360_000, 10_000: 3_600_000} {
		l := NewPublishLog(topics(topicCount), 1000, startUS, uint64(messages))
		lag, answer := jitter(r, 0, 3*time.Millisecond), jitter(r, 200*time.Microsecond, 20*time.Millisecond)
		for i := range messages {
			sent := l.Due(uint64(i)) + lag().Microseconds()
			l.Settle(i%topicCount, l.Begin(i%topicCount, sent), PublishOutcome{State: Confirmed, SentUS: sent, AtUS: sent + answer().Microseconds()})
		}
		s := newEmptyShard(planFor(1, 1), 1)
		before := len(encode(t, s))
		s.Published = l.Published(true)
		file := encode(t, s)
		require.Less(t, len(file)-before, 6_000_000*messages/3_600_000, "number of topics: %d", topicCount)
		got, err := Read(bytes.NewReader(file))
		require.NoError(t, err)
		require.EqualValues(t, messages, got.Published.Sums().Confirmed)
	}
}

// The messages of a fast service may have equal times, which compress better than usual.
func TestConstantPublisherStaysWithinTheBounds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	l := NewPublishLog(topics(1), MaxRate, startUS, MaxPublished)
	l.p.columns[0] = column{count: MaxPublished, lags: bytes.Repeat([]byte{1}, MaxPublished), answers: bytes.Repeat([]byte{1}, MaxPublished)}
	l.sums.Sent = MaxPublished
	require.EqualValues(t, MaxPublished, rereadPublished(t, l.Published(true)).Messages)
}

func TestMessagesInFlightAreOpenInASnapshot(t *testing.T) {
	t.Parallel()
	l := NewPublishLog(topics(2), 10, startUS, 100)
	for range 3 { // messages of one topic, answered in a different order
		l.Begin(0, startUS+1000)
	}
	l.Settle(0, 2, PublishOutcome{State: Confirmed, SentUS: startUS + 2000_000, AtUS: startUS + 2001_000})
	before := l.Published(false)
	require.Equal(t, []MessageState{Open, Confirmed, Open}, statesOf(before.Topic(0)))
	require.Empty(t, before.Topic(1))
	require.EqualValues(t, startUS+2000_000, before.Topic(0)[1].SentUS)
	require.Equal(t, PublishSums{Sent: 3, Confirmed: 1, Open: 2, Late: 1, MaxLagUS: 1_800_000}, before.Sums())
	require.Empty(t, before.Unanswered(), "a message in flight must not count as unanswered")
	l.Settle(0, 1, PublishOutcome{State: Open, SentUS: startUS, AtUS: startUS + 10_000_000, Text: "no response within 10s"})
	l.Settle(0, 3, PublishOutcome{State: Refused, Status: 503, SentUS: startUS + 400_000, AtUS: startUS + 500_000, Text: "full"})
	after := l.Published(true)
	require.Equal(t, []MessageState{Open, Confirmed, Refused}, statesOf(after.Topic(0)))
	require.Equal(t, []MessageState{Open, Confirmed, Open}, statesOf(before.Topic(0)), "a snapshot must not change")
	require.Equal(t, []PublishFailure{{State: Open, Count: 1, Number: 1, Text: "no response within 10s"}}, after.Unanswered())
	require.Equal(t, []PublishFailure{{State: Refused, Status: 503, Count: 1, Number: 3, Text: "full"}}, after.Refusals())
}

func statesOf(messages []Message) (out []MessageState) {
	for _, m := range messages {
		out = append(out, m.State)
	}
	return out
}

func TestSnapshotsDuringPublishing(t *testing.T) {
	t.Parallel()
	l := NewPublishLog(topics(4), 1000, startUS, 4000)
	var writers sync.WaitGroup
	for topic := range 4 {
		writers.Go(func() {
			for range 1000 {
				n := l.Begin(topic, startUS)
				l.Settle(topic, n, PublishOutcome{State: Confirmed, SentUS: startUS + int64(n)*4000, AtUS: startUS + int64(n)*4001})
			}
		})
	}
	var last uint64
	for last < 4000 {
		p := l.Published(false)
		read := rereadPublished(t, p)
		require.Equal(t, p.Sums(), read.Sums())
		require.GreaterOrEqual(t, read.Messages, last)
		last = read.Messages
	}
	writers.Wait()
	require.EqualValues(t, 4000, l.Sums().Confirmed)
}

func publishedSample(t testing.TB) *Published {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	l, _ := publish(r, 2, 90, 10, jitter(r, 0, time.Second), jitter(r, 0, time.Second))
	return l.Published(true)
}

func rereadPublished(t testing.TB, p *Published) *Published {
	t.Helper()
	s := newEmptyShard(planFor(1, 1), 1)
	s.Published = p
	read, err := reread(t, s)
	require.NoError(t, err)
	return read.Published
}

func TestReadRejectsImpossiblePublishedMessages(t *testing.T) {
	t.Parallel()
	s := newEmptyShard(planFor(1, 1), 1)
	s.Published = publishedSample(t)
	text := jsonOf(t, s)
	for _, c := range []struct{ old, new, want string }{
		{`"published":{`, `"published":[{`, "not a complete shard"},
		{`"published":{`, `"published_":{`, "messages of an unknown topic"},
		{`"topics":["soak-topic-0","soak-topic-1"]`, `"topics":[]`, "messages of an unknown topic"},
		{`"topics":["soak-topic-0","soak-topic-1"]`, `"topics":["a"]`, "messages of an unknown topic"},
		{`"rate":10`, `"rate":0`, "rate must be above 0 and at most 10000 messages per second, got 0"},
		{`"rate":10`, `"rate":1e308`, "got 1e+308"},
		{`"rate":10`, `"rate":1e-300`, "impossible plan of the publisher"},
		{`"planned":90`, `"planned":18446744073709551615`, "impossible plan of the publisher"},
		{`"planned":90`, `"planned":50`, `45 messages were sent to "soak-topic-0", but 25 were due`},
		{`"sent":90`, `"sent":91`, `91 messages were sent, but 90 are listed`},
		{`{"topic":1,`, `{"topic":0,`, `90 messages were sent to "soak-topic-0", but 45 were due`},
		{`{"topic":1,`, `{"topic":-1,`, "messages of an unknown topic"},
		{`{"topic":1,`, `{"topic":1,"lags":"AQ=="},{"topic":1,`, `of "soak-topic-1"`},
		{`{"topic":1,`, `{"topic":1,"lags":"Aw=="},{"topic":1,`, `of "soak-topic-1"`},
		{`{"topic":1,`, `{"topic":1,"lags":"////////////"},{"topic":1,`, "unreadable message"},
		{`{"topic":1,`, `{"topic":1,"answers":"AQ=="},{"topic":1,`, "unreadable message"},
		{`"started_unix_us":1700000000000000,"planned"`, `"started_unix_us":-1,"planned"`, "impossible start of the publisher: -1"},
		{`"lag":{`, `"lag_":{`, "lag or answer is missing"},
		{`"state":"refused"`, `"state":"lost"`, `unknown state of a message: "lost"`},
		{`"state":"refused"`, `"state":"confirmed"`, "impossible failure with the state confirmed"},
		{`"number":`, `"number":9`, "was not sent"},
		{`"messages":[{`, `"messages":7,"x":[{`, "messages must be a list"},
		{`"messages":[{`, `"more":[{`, "90 messages were sent, but 0 are listed"},
	} {
		require.Contains(t, text, c.old)
		_, err := Read(bytes.NewReader(pack(t, []byte(strings.Replace(text, c.old, c.new, 1)))))
		require.ErrorContains(t, err, c.want, c.new)
		require.NotContains(t, err.Error(), "\n")
	}
}
