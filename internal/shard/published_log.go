package shard

import (
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
)

// A PublishLog records the messages of a running publisher. It is safe for concurrent use.
type PublishLog struct {
	mu       sync.Mutex
	p        Published                 // its columns have no messages in flight
	inFlight map[int][]*pendingMessage // by topic, in the order of their numbers
	sums     PublishSums
}

// A pendingMessage is a message in flight. It moves to its column when it and all previous messages have an outcome.
type pendingMessage struct {
	sentUS     int64
	hasOutcome bool
	codedMessage
}

// NewPublishLog returns an empty log. rate is in messages per second over all topics, startedUS is the due time of the
// first message, and planned is the number of messages.
func NewPublishLog(topics []string, rate float64, startedUS int64, planned uint64) *PublishLog {
	return &PublishLog{
		p: Published{
			Topics: topics, Rate: rate, StartedUS: startedUS, Planned: planned,
			Lag: NewHistogram(), Answer: NewHistogram(), columns: make([]column, len(topics)),
		},
		inFlight: make(map[int][]*pendingMessage),
	}
}

// Due returns the time at which message i is due, in microseconds since 1970.
func (l *PublishLog) Due(i uint64) int64 { return l.p.Due(i) }

// Begin records the start of the next message of a topic, and returns its number, from 1. The message is open until
// Settle.
func (l *PublishLog) Begin(topic int, sentUS int64) (number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[topic] = append(l.inFlight[topic], &pendingMessage{sentUS: sentUS})
	l.sums.Sent++
	l.sums.Open++
	return clamp.Uint64(l.p.columns[topic].count + len(l.inFlight[topic]))
}

// A PublishOutcome is the result of sending a message.
type PublishOutcome struct {
	State  MessageState
	Status uint16
	SentUS int64 // time of sending, which may be after Begin if a connection had to be opened
	AtUS   int64 // time of the response or error
	BodyUS int64 // from the headers of the response to the end of its body
	Idle   bool  // the server may have closed the connection as idle while the message was sent
	Local  bool  // the publisher had no port, descriptor or IPv6 address for a connection
	Text   string
}

// Settle records the outcome of a message. It must be called at most once for each number that Begin returned.
func (l *PublishLog) Settle(topic int, number uint64, o PublishOutcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.inFlight[topic][int(number)-1-l.p.columns[topic].count] // #nosec G115 -- a number that Begin returned
	m.sentUS, m.hasOutcome, m.state, m.status = o.SentUS, true, o.State, o.Status
	if o.State == Confirmed || o.Status != 0 {
		l.p.Answer.Record(time.Duration(o.AtUS-o.SentUS) * time.Microsecond)
	}
	l.p.MaxBodyUS = max(l.p.MaxBodyUS, o.BodyUS)
	lag := l.encode(m, topic, int(number)-1, o.AtUS) // #nosec G115 -- a number that Begin returned
	l.p.Lag.Record(time.Duration(lag) * time.Microsecond)
	l.sums.Open--
	l.sums.settle(o.State, lag)
	if o.State != Confirmed {
		l.countFailure(topic, number, o)
	}
	count, messages := 0, l.inFlight[topic]
	for count < len(messages) && messages[count].hasOutcome {
		l.p.columns[topic].append(messages[count].codedMessage)
		count++
	}
	l.inFlight[topic] = slices.Delete(messages, 0, count)
}

// encode sets the lag and the answer time of a message in units of unitUS, and returns the lag in microseconds.
func (l *PublishLog) encode(m *pendingMessage, topic, n int, answeredUS int64) (lagUS int64) {
	lagUS = max(m.sentUS-l.p.due(topic, n), 0)
	m.lag = min(uint64(lagUS/unitUS), maxUnits)
	sent := l.p.due(topic, n) + int64(m.lag)*unitUS // #nosec G115 -- at most maxUnits
	m.answer = min(uint64(max(answeredUS-sent+unitUS-1, 0)/unitUS), maxUnits)
	return lagUS
}

// maxFailureText is the maximum length of PublishFailure.Text in bytes.
const maxFailureText = 200

// countFailure counts a failure in Failed, unless its kind is beyond maxKinds.
func (l *PublishLog) countFailure(topic int, number uint64, o PublishOutcome) {
	i := slices.IndexFunc(l.p.Failed, func(f PublishFailure) bool {
		return f.State == o.State && f.Status == o.Status && f.Idle == o.Idle && f.Local == o.Local
	})
	switch {
	case i >= 0:
		l.p.Failed[i].Count++
	case len(l.p.Failed) < maxKinds:
		l.p.Failed = append(l.p.Failed, PublishFailure{
			State: o.State, Status: o.Status, Idle: o.Idle, Local: o.Local, Count: 1, Topic: topic, Number: number, Text: format.Shorten(o.Text, maxFailureText),
		})
	}
}

// Sums returns the current counts.
func (l *PublishLog) Sums() PublishSums {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums
}

// Published returns the messages so far. Messages without an outcome are open. The result shares the settled messages
// with the log, which only appends messages.
func (l *PublishLog) Published(finished bool) *Published {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &Published{
		Topics: l.p.Topics, Rate: l.p.Rate, StartedUS: l.p.StartedUS, Planned: l.p.Planned, Messages: l.sums.Sent, Finished: finished,
		MaxBodyUS: l.p.MaxBodyUS, Lag: l.p.Lag.Copy(), Answer: l.p.Answer.Copy(), Failed: slices.Clone(l.p.Failed),
		columns: slices.Clone(l.p.columns),
	}
	for topic, messages := range l.inFlight {
		c := &p.columns[topic]
		c.lags, c.answers = slices.Clip(c.lags), slices.Clip(c.answers) // so that appends do not write into the log
		for _, m := range messages {
			message := *m
			if !message.hasOutcome {
				l.encode(&message, topic, c.count, message.sentUS)
			}
			c.append(message.codedMessage)
		}
	}
	return p
}
