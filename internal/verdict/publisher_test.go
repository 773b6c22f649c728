package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Messages that the service did not confirm are not expected. The publisher may be late, or wait for the service. A
// publisher that stalls until the end of the run does not send all messages. The service is the cause only if no stall
// explains both the unsent messages and the lag of the sent ones.
func TestFaultsOfPublishing(t *testing.T) {
	t.Parallel()
	fail := func(state shard.MessageState, change func(f *shard.PublishFailure)) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.failToPublish(state)
			p.change = func(shards []*shard.Shard) {
				change(&shards[0].Published.Failed[0])
				shards[1].Checks = []shard.ScriptCheck{{Name: "Received all messages", Fails: 2}} // a runner does not know that the message is unconfirmed
			}
		}
	}
	unchanged := func(*shard.PublishFailure) {}
	shards := func(change func(shards []*shard.Shard)) func(p *publishedRun) {
		return func(p *publishedRun) { p.change = change }
	}
	late := func(maxBodyUS int64) func(p *publishedRun) { // it started 1.2 s late
		return func(p *publishedRun) {
			p.log = shard.NewPublishLog([]string{"s-topic-0", "s-topic-1"}, 2, p.at[0].Add(-200*time.Millisecond).UnixMicro(), 2*perTopic)
			p.change = func(shards []*shard.Shard) { shards[0].Published.MaxBodyUS = maxBodyUS }
		}
	}
	stall := func(us int64, unsent uint64) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.log = shard.NewPublishLog([]string{"s-topic-0", "s-topic-1"}, 2, p.at[0].Add(time.Second).UnixMicro(), 2*perTopic+unsent)
			p.change = func(shards []*shard.Shard) {
				shards[0].Runner.StallMaxUS = us
				shards[1].Runner.StallMaxUS = 60_000_000 // it does not publish
			}
		}
	}
	untimed := func(limit int) func(p *publishedRun) {
		return func(p *publishedRun) {
			p.plan.MaxLate = limit
			p.changeEach(func(s *shard.Shard) { s.Latency = nil })
		}
	}
	noPort := func(local bool) func(p *publishedRun) {
		return fail(shard.Refused, func(f *shard.PublishFailure) { f.Status, f.Local = 0, local })
	}
	var none [4]uint64
	judgePublished(t, []publishedCase{
		{"a message is refused", fail(shard.Refused, unchanged), Fail, none, "1 message was refused; it was number 5 of topic s-topic-1"},
		{"a message is refused, and one stream receives it", func(p *publishedRun) {
			p.failToPublish(shard.Refused)
			p.lose(func(stream int, number uint64) bool { return stream == 3 && number == 5 })
		}, Fail, none, "number 5 of topic s-topic-1"},
		{"a message is not answered", fail(shard.Open, unchanged), Fail, none, "1 message was not answered; it was number 5 of topic s-topic-1"},
		// RFC 9112, 9.5: a server may close an idle connection at any time, and only the server knows whether it received
		// the message.
		{"a message is not answered on an idle connection", fail(shard.Open, func(f *shard.PublishFailure) { f.Idle = true }), Invalid, none,
			"1 message was not answered; it was number 5 of topic s-topic-1"},
		{"the generator had no port left for a message", noPort(true), Invalid, none,
			"1 connect of the publisher failed, because the load generator had no local port, file descriptor or IPv6 address; " +
				"widen net.ipv4.ip_local_port_range, raise ulimit -n, add machines for runners, or enable IPv6"},
		{"no connection could be made for a message", noPort(false), Fail, none, "1 message was not sent, because no connection could be made"},
		{"no publisher", shards(func(s []*shard.Shard) { s[0].Published = nil }), Invalid, [4]uint64{0, 0, 0, 8}, "no runner recorded published messages"},
		{"two publishers", shards(func(s []*shard.Shard) { s[1].Published = s[0].Published }), Invalid, none, "2 runners published"},
		{"two descriptions", shards(func(s []*shard.Shard) { s[1].Service = shard.Service{Name: "mine", SHA256: "y"} }), Invalid, none, "a different service description"},
		{"late", late(0), Invalid, none, "over 1 s behind the schedule, up to 1.2 s: the publisher did not keep up, or the service was slow to answer it (p99 3 ms, max 3 ms)"},
		{"late because of the bodies of responses", late(3_000_000), Invalid, none,
			"the publisher waits for the end of each response body, which arrived up to 3 s after the headers (p99 of the headers: 3 ms)"},
		{"unsent, without a stall", stall(0, 10), Fail, none, "10 of 50 messages were not sent before the end"},
		{"unsent, with a short stall", stall(400_000, 1), Fail, none, "1 of 41 messages was not sent before the end"},
		{"unsent because of a stall", stall(4_100_000, 10), Invalid, none, "10 of 50 messages were not sent before the end, because the load generator stalled for up to 4.1 s"},
		{"unsent for longer than a stall", stall(3_900_000, 10), Fail, none, "10 of 50 messages were not sent before the end"},
		{"no times, and any lateness is allowed", untimed(-1), Pass, none, ""},
		{"no times, and lateness is limited", untimed(0), Invalid, none,
			"the lateness of messages is unknown, because none contained its publish time (message.sentAt); the limit is 0 (MAX_LATE)"},
	})
}

// A machine may stall for a second a few times in an hour. The publisher sends the delayed messages after the stall,
// and all are checked.
func TestShortPublisherStallIsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late   uint64
		lagMS  float64
		onTime bool
	}{{0, 900, true}, {10, 1480, true}, {11, 1480, false}, {1, 10_001, false}} {
		s := &Streams{Counts: Counts{Messages: Messages{Published: &Publication{Planned: 1000, Sent: 1000, Confirmed: 1000, Late: c.late, MaxLagMS: c.lagMS}}}}
		require.Equal(t, c.onTime, s.publishedOnTime(), "%+v", c)
	}
}

// A stall that ended earlier does not explain why the last messages were not sent. It may explain the lag of the sent
// ones.
func TestStallOfThePublisherMustBeAtTheEnd(t *testing.T) {
	t.Parallel()
	const second = int64(1e6)
	for _, c := range []struct {
		longest map[int64]int64 // lateness of the control group by second of the run
		lag     time.Duration   // of all sent messages
		want    Outcome
	}{
		{map[int64]int64{10: 5 * second}, 0, Fail},
		{map[int64]int64{25: 5 * second}, 0, Invalid},
		{map[int64]int64{25: 5 * second}, 7 * time.Second, Fail},
		{map[int64]int64{5: 7 * second, 25: 5 * second}, 7 * time.Second, Invalid},
	} {
		p := newPublishedRun()
		start := p.at[0].Add(time.Second - c.lag)
		p.log = shard.NewPublishLog([]string{"s-topic-0", "s-topic-1"}, 2, start.UnixMicro(), 2*perTopic+10)
		p.change = func(shards []*shard.Shard) {
			counts := shard.ControlCounts{Expected: 600, Received: 600}
			for at := int64(0); at < 30; at += 5 {
				b := shard.Bucket{Unix: p.at[0].Unix() + at, Control: &shard.ControlCounts{Expected: 100, Received: 100, LongestUS: c.longest[at]}}
				shards[0].Series = append(shards[0].Series, b)
				counts.LongestUS = max(counts.LongestUS, c.longest[at])
			}
			shards[0].Control = &shard.Control{Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: counts}
		}
		v := requireOutcome(t, c.want, p.judge(t), "%+v", c)
		confirmed := check(t, v, "messages published and confirmed")
		require.Equal(t, c.want == Invalid, confirmed.ExplainedBy == SignalControl)
		require.Equal(t, c.want == Invalid, strings.Contains(v.Reasons[0], "because the load generator stalled for up to 5.05 s"))
	}
}

// A publishedRun is a run of 4 streams on 2 topics. A message is published to each topic every second. The streams
// belong to two runners, whose clocks may differ.
type publishedRun struct {
	cfg  ledger.Config
	at   [2]time.Time // when each runner started, by its own clock
	log  *shard.PublishLog
	plan plan.Plan

	delay   time.Duration                     // until a message arrives
	answer  func(number uint64) time.Duration // until the service answers
	outcome func(topic int, number uint64) shard.MessageState
	// deliver returns the numbers with which a message arrives at a stream, in order; nil: none, 0: a corrupted one.
	deliver       func(stream int, number uint64) []uint64
	shape         func(stream int, l *ledger.Ledger)                // changes the streams of a client; by default a client has one, from 0.5 s to 25 s
	shapeAt       uint64                                            // shape is called before this number arrives; 0: before all
	beforeMessage func(stream int, number uint64, l *ledger.Ledger) // called before each message; may be nil
	change        func(shards []*shard.Shard)
	actions       []ActionResult
}

const perTopic = 20 // messages; the first is sent 1 s after the start

func newPublishedRun() *publishedRun {
	p := plan.Default()
	p.TestID, p.Prefix, p.Service, p.Topics, p.PublishRate, p.Marker = "t", "s-", "mine", 2, 2, "t-1"
	p.Connections, p.Runners, p.ConnectionsPerVU, p.Seconds, p.NoopInterval, p.BackendURL = 4, 2, 1, 30, 1, "http://h"
	start := time.UnixMicro(1_700_000_000_000_000)
	return &publishedRun{
		cfg:     ledger.Config{Counting: ledger.Numbered, Published: true, ClientEnds: true, LatenessLimit: time.Second, Interval: time.Second},
		at:      [2]time.Time{start, start},
		log:     shard.NewPublishLog([]string{"s-topic-0", "s-topic-1"}, 2, start.Add(time.Second).UnixMicro(), 2*perTopic),
		plan:    p,
		delay:   2 * time.Millisecond,
		answer:  func(uint64) time.Duration { return 3 * time.Millisecond },
		outcome: func(int, uint64) shard.MessageState { return shard.Confirmed },
		deliver: func(_ int, number uint64) []uint64 { return []uint64{number} },
		shape:   func(int, *ledger.Ledger) {},
		change:  func([]*shard.Shard) {},
	}
}

// lose loses the messages for which match is true, and delivers all others once.
func (p *publishedRun) lose(match func(stream int, number uint64) bool) {
	p.deliver = func(stream int, number uint64) []uint64 {
		if match(stream, number) {
			return nil
		}
		return []uint64{number}
	}
}

// failToPublish sets the outcome of message 5 of topic 1, which no stream receives.
func (p *publishedRun) failToPublish(state shard.MessageState) {
	p.outcome = func(topic int, number uint64) shard.MessageState {
		if topic == 1 && number == 5 {
			return state
		}
		return shard.Confirmed
	}
	p.lose(func(stream int, number uint64) bool { return stream%2 == 1 && number == 5 })
}

func (p *publishedRun) changeEach(change func(s *shard.Shard)) {
	p.change = func(shards []*shard.Shard) {
		for _, s := range shards {
			change(s)
		}
	}
}

// replaceMessages returns a function that delivers other messages in place of some messages of one stream.
func replaceMessages(stream int, changes map[uint64][]uint64) func(int, uint64) []uint64 {
	return func(s int, number uint64) []uint64 {
		if replacements, ok := changes[number]; ok && s == stream {
			return replacements
		}
		return []uint64{number}
	}
}

// drop makes the server drop stream 0, and calls next, which may open another one.
func (p *publishedRun) drop(at time.Duration, next func(l *ledger.Ledger)) {
	p.plan.Reconnect, p.shapeAt = true, uint64((at+time.Second-1)/time.Second)
	p.shape = func(stream int, l *ledger.Ledger) {
		if stream == 0 {
			l.Closed(at, "server", true, true)
			next(l)
		}
	}
}

// reopen opens the next stream of a client, which may resume the previous one.
func reopen(l *ledger.Ledger, requested, opened time.Duration, resumes bool) {
	l.Connecting(requested)
	if resumes {
		l.IDReceived()
	}
	l.Opened(opened)
}

// breakStream makes the server drop stream 0 at one time, and the client resume it at another time. The client receives
// all messages except number lost, or all messages if lost is 0.
func (p *publishedRun) breakStream(at, reconnect time.Duration, lost uint64) {
	p.drop(at, func(l *ledger.Ledger) { reopen(l, reconnect-time.Second, reconnect, true) })
	p.lose(func(stream int, number uint64) bool { return stream == 0 && number == lost })
}

func (p *publishedRun) judge(t *testing.T) *Verdict {
	t.Helper()
	start := p.at[0]
	sent := func(topic int, number uint64) time.Time {
		return start.Add(time.Second*time.Duration(number) + time.Duration(topic)*500*time.Millisecond)
	}
	for number := uint64(1); number <= perTopic; number++ {
		for topic := range 2 {
			p.log.Begin(topic, sent(topic, number).UnixMicro())
			state := p.outcome(topic, number)
			status := map[shard.MessageState]uint16{shard.Confirmed: 200, shard.Refused: 503}[state]
			p.log.Settle(topic, number, shard.PublishOutcome{State: state, Status: status, SentUS: sent(topic, number).UnixMicro(), AtUS: sent(topic, number).Add(p.answer(number)).UnixMicro()})
		}
	}
	shards := make([]*shard.Shard, 2)
	for i := range shards {
		shards[i] = &shard.Shard{
			Plan: p.plan, Service: shard.Service{Name: "mine", SHA256: "x", CountBasis: shard.CountByNumber},
			Runner: shard.Runner{
				TestID: "t", Index: i + 1, Segment: []string{"0:1/2", "1/2:1"}[i], Host: fmt.Sprint("host-", i), Process: fmt.Sprint(i),
				State: shard.Finished, StartedUS: p.at[i].UnixMicro(), EndedUS: p.at[i].Add(30 * time.Second).UnixMicro(),
			},
			Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
			Checks: []shard.ScriptCheck{{Name: "Received all messages", Passes: 2}},
		}
	}
	shards[0].Published = p.log.Published(true)
	for stream := range 4 {
		s := shards[stream%2]
		skew := p.at[stream%2].Sub(p.at[0])
		l := ledger.New(p.plan.ClientID(stream), &p.cfg)
		l.Connecting(1)
		l.Opened(500 * time.Millisecond)
		if p.shapeAt == 0 {
			p.shape(stream, l)
		}
		topic := p.plan.Topic(stream)
		fastest := time.Duration(1<<62 - 1)
		for number := uint64(1); number <= perTopic; number++ {
			if number == p.shapeAt {
				p.shape(stream, l)
			}
			if p.beforeMessage != nil {
				p.beforeMessage(stream, number, l)
			}
			for _, n := range p.deliver(stream, number) {
				d := ledger.Delivery{At: sent(topic, number).Sub(start) + p.delay, Number: n, Timed: true, Lateness: p.delay}
				if n == 0 {
					d.CorruptionReason = "no JSON"
				}
				if d.At < 25*time.Second {
					l.Delivered(&d)
				}
				fastest = min(fastest, p.delay+skew)
			}
		}
		l.CloseRequested(25 * time.Second)
		l.Closed(25*time.Second, ledger.ReasonClient, false, false)
		s.Connections = append(s.Connections, l.Record())
		if s.Latency == nil && fastest < time.Hour {
			s.Latency = &shard.Latency{MinUS: fastest.Microseconds(), Histogram: shard.NewHistogram()}
			s.Latency.Histogram.Record(2 * time.Millisecond)
		}
	}
	p.change(shards)
	return judgeSoak(shard.Merge(p.plan, shards), nil, Evidence{Actions: p.actions})
}
