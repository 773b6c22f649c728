package verdict

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A sharedRun is a run of 4 clients of two runners, whose clocks differ by 10 s. A message without a number arrives
// every second.
type sharedRun struct {
	cfg           ledger.Config
	plan          plan.Plan
	messages      int
	content       func(stream, message int) []uint64 // the contents that a stream receives for a message, in order
	lag           func(stream int) time.Duration
	beforeMessage func(stream, message int, l *ledger.Ledger, at time.Duration) // called before a message
	topics        []string
}

func newSharedRun() *sharedRun {
	p := plan.Default()
	p.TestID, p.Prefix, p.Service, p.BackendURL = "t", "gold-", "mine", "http://h"
	p.Connections, p.Runners, p.ConnectionsPerVU, p.Seconds, p.NoopInterval = 4, 2, 1, 30, 1
	return &sharedRun{
		cfg: ledger.Config{
			Counting: ledger.Numbered, Published: true, AnyOrder: true, ClientEnds: true, LatenessLimit: time.Second, Interval: time.Second, IgnoresSilence: true,
		},
		plan: p, messages: 20,
		content:       func(_, message int) []uint64 { return []uint64{uint64(message)} }, // #nosec G115 -- positive
		lag:           func(stream int) time.Duration { return time.Duration(stream) * time.Millisecond },
		beforeMessage: func(int, int, *ledger.Ledger, time.Duration) {},
	}
}

func (s *sharedRun) judge(t *testing.T) *Verdict {
	t.Helper()
	return judgeSoak(s.merged(), nil, Evidence{})
}

func (s *sharedRun) merged() *shard.Merged {
	s.plan.TopicNames = s.topics
	return mergeFeed(s.plan, &s.cfg, []int{0, 1, 0, 1}, func(ledgers []*ledger.Ledger) {
		for _, l := range ledgers {
			l.Connecting(1)
			l.Opened(500 * time.Millisecond)
		}
		type arrival struct {
			at      time.Duration
			stream  int
			message int
		}
		var all []arrival
		for message := 1; message <= s.messages; message++ {
			for stream := range ledgers {
				all = append(all, arrival{time.Duration(message)*time.Second + s.lag(stream), stream, message})
			}
		}
		slices.SortStableFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
		for _, a := range all {
			s.beforeMessage(a.stream, a.message, ledgers[a.stream], a.at)
			for _, sum := range s.content(a.stream, a.message) {
				ledgers[a.stream].DeliveredUnnumbered(ledger.Fingerprint{At: a.at, Sum: sum})
			}
		}
		for _, l := range ledgers {
			l.CloseRequested(25 * time.Second)
			l.Closed(25*time.Second, ledger.ReasonClient, false, false)
		}
	})
}

// mergeFeed merges the shards of clients that receive messages without numbers. runners has the index of the runner of
// each client. The clocks of successive runners differ by 10 s.
func mergeFeed(p plan.Plan, cfg *ledger.Config, runners []int, receive func(ledgers []*ledger.Ledger)) *shard.Merged {
	start := time.UnixMicro(1_700_000_000_000_000)
	shards := make([]*shard.Shard, p.Runners)
	logs := make([][]*ledger.Log, p.Runners)
	before := 0
	for i := range shards {
		clients := 0
		for _, r := range runners {
			if r == i {
				clients++
			}
		}
		at := start.Add(time.Duration(i) * 10 * time.Second)
		shards[i] = &shard.Shard{
			Plan: p, Service: shard.Service{Name: "mine", SHA256: "x", CountBasis: shard.CountByComparison},
			Runner: shard.Runner{
				TestID: "t", Index: i + 1, Segment: segment(before, before+clients, len(runners)), Host: fmt.Sprint("host-", i), Process: fmt.Sprint(i),
				State: shard.Finished, StartedUS: at.UnixMicro(), EndedUS: at.Add(30 * time.Second).UnixMicro(),
			},
			Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
			Checks: []shard.ScriptCheck{{Name: "Received all messages", Passes: int64(clients)}},
		}
		before += clients
		for range p.TopicCount() {
			logs[i] = append(logs[i], ledger.NewLog())
		}
	}
	ledgers := make([]*ledger.Ledger, len(runners))
	for client, r := range runners {
		ledgers[client] = ledger.New(p.ClientID(client), cfg)
		ledgers[client].UseLog(logs[r][p.Topic(client)])
	}
	receive(ledgers)
	for client, l := range ledgers {
		runnerShard := shards[runners[client]]
		runnerShard.Connections = append(runnerShard.Connections, l.Record())
	}
	for i := range shards {
		for _, l := range logs[i] {
			shards[i].AddFeed(l)
		}
	}
	return shard.Merge(p, shards)
}

// segment returns the execution segment of a runner whose clients have the indexes [from, to).
func segment(from, to, clients int) string {
	bound := func(n int) string {
		if n == clients {
			return "1"
		}
		return fmt.Sprintf("%d/%d", n, clients)
	}
	if from == 0 {
		return "0:" + bound(to)
	}
	return bound(from) + ":" + bound(to)
}

// setContent sets the content of the messages for which matches returns true, and keeps the content of all others.
func (s *sharedRun) setContent(matches func(stream, message int) bool, sums ...uint64) {
	previous := s.content
	s.content = func(stream, message int) []uint64 {
		if matches(stream, message) {
			return sums
		}
		return previous(stream, message)
	}
}

func faultCounts(v *Verdict) [4]uint64 {
	m := &v.Messages
	return [4]uint64{m.Missed, m.Duplicated, m.Reordered, m.Corrupted}
}

func TestClientsThatReceivedTheSameMessagesPass(t *testing.T) {
	t.Parallel()
	s := newSharedRun()
	v := s.judge(t)
	require.Equal(t, "PASS: 4 clients received the same 19 messages; the loss of a message that reached no client cannot be detected", v.Sentence, v.Reasons)
	require.Equal(t, BySubscribers, v.Evidence.Kind)
	require.True(t, *v.MessagesChecked)
	require.Len(t, v.Messages.Topics, 1)
}

func TestMessageMissedByOneClientIsFound(t *testing.T) {
	t.Parallel()
	s := newSharedRun()
	s.setContent(func(stream, message int) bool { return stream == 2 && message == 7 })
	v := requireOutcome(t, Fail, s.judge(t))
	require.Equal(t, [4]uint64{1, 0, 0, 0}, faultCounts(v))
	require.Len(t, v.Findings, 1)
	require.Equal(t, "gold-2 missed message 7, which 3 of 4 clients received, the first at 22:13:27.000 UTC", v.Findings[0].Text)
	require.Equal(t, []string{"gold-2"}, v.Messages.Topics[0].Diverged)
}

func TestOutcomeOfComparedClients(t *testing.T) {
	t.Parallel()
	lag := func(d time.Duration) func(int) time.Duration { // of the last client
		return func(stream int) time.Duration { return time.Duration(stream/3) * d }
	}
	firstLags := func(repeats bool) func(s *sharedRun) {
		return func(s *sharedRun) {
			s.lag = lag(4 * time.Second)
			s.content = func(stream, message int) []uint64 {
				switch {
				case stream == 3 && message == 1: // its first messages were sent before the other clients joined
					return []uint64{100, 101, 102, 1}
				case repeats && message > 4:
					return []uint64{uint64(5 + message/2)} // #nosec G115 -- positive
				}
				return []uint64{uint64(message)} // #nosec G115 -- positive
			}
		}
	}
	for name, c := range map[string]struct {
		change func(s *sharedRun)
		want   Outcome
		missed uint64
		reason string
	}{
		"a client lags": {func(s *sharedRun) {
			s.lag = lag(3 * time.Second)
			s.setContent(func(stream, message int) bool { return stream == 3 && message > 20 })
		}, Pass, 0, ""},
		"the client that joined first lags":               {firstLags(false), Pass, 0, ""},
		"the client that joined first lags, with repeats": {firstLags(true), Pass, 0, ""},
		"a greeting for each, and two contents": {func(s *sharedRun) {
			s.content = func(stream, message int) []uint64 {
				if message == 1 {
					return []uint64{uint64(1000 + stream), 5} // #nosec G115 -- positive
				}
				return []uint64{uint64(5 + message/3%2)} // #nosec G115 -- positive
			}
		}, Pass, 0, ""},
		// Several messages are in transit to different clients, so it is unknown which message a client lacks.
		"two contents in quick succession": {func(s *sharedRun) {
			s.content = func(_, message int) []uint64 {
				var contents []uint64
				for n := range 40 {
					contents = append(contents, uint64(1+(message*message+n*n*n)%3%2)) // #nosec G115 -- positive
				}
				return contents
			}
		}, Invalid, 0, "the messages have 2 different contents and arrive every 23.8 ms on average"},
		"few messages": {func(s *sharedRun) { s.messages = 4 }, Invalid, 0,
			"4 clients received 3 messages: hold the streams for longer (SECONDS), or publish messages to the service during the run"},
		"personal content": {func(s *sharedRun) {
			s.content = func(stream, message int) []uint64 { return []uint64{uint64(100*stream + message)} } // #nosec G115 -- positive
		}, Invalid, 0, "the clients received different messages, most of which reached only one client each: set message.same to the part that is the same for all"},
		// The first message of a stream may be a greeting, so its loss is not a fault, but must be stated.
		"the first message is lost": {func(s *sharedRun) {
			s.setContent(func(stream, message int) bool { return stream == 2 && message == 1 })
		}, Pass, 0, "PASS: 4 clients received the same 19 messages; 1 more did not arrive and was not expected;"},
		// By the clocks, which differ by 10 s, messages reach the second runner 3 s later than the first one. A new stream
		// does not receive messages that were sent before, although another client of the runner receives them afterward.
		"messages in transit to a new stream": {func(s *sharedRun) {
			const newStream, reopenedAt, transit = 3, 10*time.Second + 200*time.Millisecond, 3 * time.Second
			s.messages = 16
			s.lag = func(stream int) time.Duration { return time.Duration((stream+1)%2) * 7 * time.Second }
			s.beforeMessage = func(stream, message int, l *ledger.Ledger, at time.Duration) {
				if stream == newStream && message == 10 {
					l.Closed(at-100*time.Millisecond, "server", true, true)
					reopen(l, reopenedAt-50*time.Millisecond, reopenedAt, false)
				}
			}
			s.setContent(func(stream, message int) bool {
				return stream == newStream && message >= 10 && time.Duration(message)*time.Second-transit < reopenedAt
			})
		}, Pass, 0, ""},
		"a client is disconnected at the end": {func(s *sharedRun) {
			s.plan.Reconnect, s.plan.MaxOutageS, s.cfg.Resumes, s.cfg.MaxOutage = true, 30, true, 30*time.Second
			s.beforeMessage = func(stream, message int, l *ledger.Ledger, at time.Duration) {
				if stream == 3 && message == 15 {
					l.IDReceived()
					l.Closed(at-100*time.Millisecond, "server", true, true)
				}
			}
			s.setContent(func(stream, message int) bool { return stream == 3 && message >= 15 })
		}, Pass, 0, "PASS: 3 clients received the same 19 messages, 1 reconnecting; up to 6 losses could not have been detected;"},
		"one client per topic": {func(s *sharedRun) { s.topics = []string{"a", "b", "c", "d"} }, Invalid, 0, "a comparison needs at least 2 clients, got 1 of topic a: set CONNECTIONS"},
	} {
		s := newSharedRun()
		c.change(s)
		v := requireOutcome(t, c.want, s.judge(t), name)
		require.Equal(t, c.missed, v.Messages.Missed, name)
		require.Contains(t, fmt.Sprint(v.Reasons, v.Sentence), c.reason, name)
	}
}

// The selected clients are compared with all clients, most of which received the message once.
func TestSomeClientsAreComparedWithAll(t *testing.T) {
	t.Parallel()
	s := newSharedRun()
	s.setContent(func(stream, message int) bool { return stream == 0 && message == 7 }, 7, 7)
	s.setContent(func(stream, message int) bool { return stream == 0 && message == 9 })
	all := s.merged()
	part := *all
	part.FeedConnections, part.Connections = &all.Connections, shard.Connections{}
	for _, c := range all.Connections.All() {
		if c.ID == "gold-0" {
			part.Connections.Add(c)
		}
	}
	part.Plan.Connections = 1
	streams := StreamsOf(&part, nil, false)
	require.Equal(t, [2]uint64{1, 1}, [2]uint64{streams.Messages.Missed, streams.Messages.Duplicated})
	require.Contains(t, streams.Findings[1].Text, "which 3 of 4 clients received")
}

// Each topic is aligned by the records of its own clients.
func TestManyTopicsAreCompared(t *testing.T) {
	t.Parallel()
	const topics, clients = 200, 1000
	s := newSharedRun()
	s.plan.Connections, s.plan.Runners = clients, 1
	for k := range topics {
		s.plan.TopicNames = append(s.plan.TopicNames, fmt.Sprint("topic-", k))
	}
	v := judgeSoak(mergeFeed(s.plan, &s.cfg, make([]int, clients), func(ledgers []*ledger.Ledger) {
		for n, l := range ledgers {
			l.Connecting(1)
			l.Opened(500 * time.Millisecond)
			for message := range uint64(20) {
				if n != topics+7 || message != 12 {
					l.DeliveredUnnumbered(ledger.Fingerprint{At: time.Duration(message+1) * time.Second, Sum: message}) // #nosec G115 -- at most 20
				}
			}
			l.CloseRequested(25 * time.Second)
			l.Closed(25*time.Second, ledger.ReasonClient, false, false)
		}
	}), nil, Evidence{})
	require.Equal(t, uint64(1), v.Messages.Missed, v.Reasons)
	require.Contains(t, v.Reasons[0], "gold-207 missed message 13 of topic topic-7")
}

// Contents repeat, and the service may deliver a message twice. A message that only some clients received may then be a
// copy, or lost at the others.
func TestMessageOfSomeClientsMayBeACopy(t *testing.T) {
	t.Parallel()
	repeating := func(message int) []uint64 { return []uint64{uint64(1 + 5*message%9)} } // #nosec G115 -- positive
	for name, c := range map[string]struct {
		content func(stream, message int) []uint64
		want    Outcome
	}{
		"repeating content at all clients": {func(_, message int) []uint64 { return repeating(message) }, Pass},
		"repeating content at half of the clients": {func(stream, message int) []uint64 {
			if message == 12 && stream >= 2 {
				return nil
			}
			return repeating(message)
		}, Invalid},
		"a copy at 3 of 4 clients": {func(stream, message int) []uint64 {
			if message == 12 && stream > 0 {
				return []uint64{12, 12}
			}
			return []uint64{uint64(message)} // #nosec G115 -- positive
		}, Invalid},
		"two copies in the last second": {func(stream, message int) []uint64 {
			switch {
			case message < 24:
				return []uint64{uint64(message)} // #nosec G115 -- positive
			case stream == 0:
				return []uint64{101, 101, 102, 103}
			case stream < 3:
				return []uint64{101, 102, 102, 103}
			}
			return []uint64{101, 102, 103}
		}, Pass},
	} {
		s := newSharedRun()
		s.cfg.Repeats, s.content, s.messages = true, c.content, 24
		s.lag = func(stream int) time.Duration { return 500*time.Millisecond + time.Duration(stream)*time.Millisecond }
		m := s.merged()
		m.Service.Repeats = true
		v := judgeSoak(m, nil, Evidence{})
		require.Equal(t, c.want, v.Verdict, "%s: %v", name, v.Reasons)
	}
}
