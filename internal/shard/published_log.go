package shard

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// PublishLog records what a publisher does while it does it. It is safe for concurrent use.
type PublishLog struct {
	mu     sync.Mutex
	p      Published // without the messages in flight
	flying [][]message
	sums   PublishSums
}

// A message was begun and is perhaps settled. It goes into its column once those before it are settled, too.
type message struct {
	sentUS  int64
	settled bool
	coded
}

// NewPublishLog is the log of a publisher that has sent nothing yet.
func NewPublishLog(topics []string, rate float64, startedUS int64, planned uint64) *PublishLog {
	return &PublishLog{
		p: Published{
			Topics: topics, Rate: rate, StartedUS: startedUS, Planned: planned,
			Lag: NewHistogram(), Answer: NewHistogram(), sent: make([]column, len(topics)),
		},
		flying: make([][]message, len(topics)),
	}
}

// Due is when message i is due, in microseconds since 1970.
func (l *PublishLog) Due(i uint64) int64 { return l.p.Due(i) }

// Begin records that the next message of a topic is about to be sent, and returns its number, from 1. Until it
// is settled it is open.
func (l *PublishLog) Begin(topic int, sentUS int64) (number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying[topic] = append(l.flying[topic], message{sentUS: sentUS})
	l.sums.Sent++
	l.sums.Open++
	return clamp.Uint64(l.p.sent[topic].count + len(l.flying[topic]))
}

// Outcome is how a message ended.
type Outcome struct {
	State  MessageState
	Status uint16
	SentUS int64 // when it was really sent: Begin may have been before a connection was there
	AtUS   int64 // when it was answered or given up
	BodyUS int64 // from the headers of the response to the end of its body
	Idle   bool  // the connection was closed as idle while the message was being sent
	Text   string
}

// Settle records how a message that was begun ended.
func (l *PublishLog) Settle(topic int, number uint64, o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := l.p.sent[topic].count
	m := &l.flying[topic][int(number)-1-done] //nolint:gosec // G115: a number that Begin returned
	m.sentUS, m.settled, m.state, m.status = o.SentUS, true, o.State, o.Status
	if o.State == Confirmed || o.Status != 0 {
		l.p.Answer.Record(time.Duration(o.AtUS-o.SentUS) * time.Microsecond)
	}
	l.p.MaxBodyUS = max(l.p.MaxBodyUS, o.BodyUS)
	lag := l.encode(m, topic, int(number)-1, o.AtUS) //nolint:gosec // G115: a number that Begin returned
	l.p.Lag.Record(time.Duration(lag) * time.Microsecond)
	l.sums.MaxLagUS = max(l.sums.MaxLagUS, lag)
	if lag >= LateAfter.Microseconds() {
		l.sums.Late++
	}
	if o.State != Open {
		l.sums.Open--
	}
	switch o.State {
	case Confirmed:
		l.sums.Confirmed++
	case Refused:
		l.sums.Refused++
		l.fail(topic, number, o)
	case Open:
		l.fail(topic, number, o)
	}
	waiting := l.flying[topic]
	for len(waiting) > 0 && waiting[0].settled {
		l.p.sent[topic].append(waiting[0].coded)
		waiting = waiting[1:]
	}
	if len(waiting) == 0 {
		waiting = l.flying[topic][:0]
	}
	l.flying[topic] = waiting
}

// encode gives a message its times in units, and says how many microseconds behind its schedule it was sent.
func (l *PublishLog) encode(m *message, topic, n int, answeredUS int64) (lagUS int64) {
	lagUS = max(m.sentUS-l.p.due(topic, n), 0)
	m.lag = min(uint64(lagUS/unitUS), mostUnits)
	sent := l.p.due(topic, n) + int64(m.lag)*unitUS //nolint:gosec // G115: at most mostUnits
	m.answer = min(uint64(max(answeredUS-sent+unitUS-1, 0)/unitUS), mostUnits)
	return lagUS
}

// fail counts one kind of failure. Of one that comes after too many others only the messages tell.
func (l *PublishLog) fail(topic int, number uint64, o Outcome) {
	for i := range l.p.Failed {
		if f := &l.p.Failed[i]; f.State == o.State && f.Status == o.Status && f.Idle == o.Idle {
			f.Count++
			return
		}
	}
	if len(l.p.Failed) < mostKinds {
		l.p.Failed = append(l.p.Failed, Failure{State: o.State, Status: o.Status, Idle: o.Idle, Count: 1, Topic: topic, Number: number, Text: brief(o.Text)})
	}
}

// brief cuts a text that comes from a service down to what a sentence can hold.
func brief(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError))
}

// Sums are counts as of now.
func (l *PublishLog) Sums() PublishSums {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums
}

// Published is all that was recorded up to now. What is in flight is open in it. It shares the messages with the
// log, which only appends to them.
func (l *PublishLog) Published(finished bool) *Published {
	l.mu.Lock()
	p := &Published{
		Topics: l.p.Topics, Rate: l.p.Rate, StartedUS: l.p.StartedUS, Planned: l.p.Planned, Finished: finished, MaxBodyUS: l.p.MaxBodyUS,
		Lag: l.p.Lag.Copy(), Answer: l.p.Answer.Copy(), Failed: append([]Failure(nil), l.p.Failed...),
		sent: append([]column(nil), l.p.sent...),
	}
	flying := make(map[int][]message)
	for topic, waiting := range l.flying {
		if len(waiting) > 0 {
			flying[topic] = append([]message(nil), waiting...)
		}
	}
	l.mu.Unlock()
	for topic := range p.sent { // what the log appends goes behind the end of these
		c := &p.sent[topic]
		c.lags, c.answers = c.lags[:len(c.lags):len(c.lags)], c.answers[:len(c.answers):len(c.answers)]
	}
	for topic, waiting := range flying {
		for _, m := range waiting {
			if !m.settled {
				l.encode(&m, topic, p.sent[topic].count, m.sentUS)
			}
			p.sent[topic].append(m.coded)
		}
	}
	return p
}
