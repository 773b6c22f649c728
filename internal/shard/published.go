package shard

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// Bounds of what one publisher sends. What it sent takes two bytes per message in memory, and 24 once it is judged.
const (
	MostPublished = 36_000_000 // messages: ten hours at 1000/s
	MostTopics    = 10_000
	MostRate      = 10_000 // messages per second
)

// LateAfter is how far behind its schedule a message is sent to count as late.
const LateAfter = time.Second

// Published is what the publisher of a run sent, and what the service said to it. Message i (from 0) is of topic
// i mod len(Topics), has number i div len(Topics) + 1 there, and is due at Due(i). A PublishLog makes it;
// afterwards nothing in it changes, except that Topic caches what it decodes.
type Published struct {
	Topics    []string
	Rate      float64 // messages per second, all topics together
	StartedUS int64   // when the first was due, microseconds since 1970
	Planned   uint64  // how many were due in all, by plan
	Finished  bool    // the publisher has sent all of them, and waited for each answer

	Lag    *Histogram // sent − due, of what was answered or given up
	Answer *Histogram // answered − sent, of what was answered
	Failed []Failure  // what was not confirmed, by kind; what is in flight at a checkpoint is in none
	// MaxBodyUS is the longest time from the headers of a response to the end of its body, for which the next message of the topic
	// waits.
	MaxBodyUS int64

	sent []column // by topic

	mu      sync.Mutex
	decoded [][]Message // by topic, of those that were asked for
}

// column holds the messages of one topic in the order of their numbers; see published_code.go.
type column struct {
	count         int
	lags, answers []byte
}

// MessageState is what became of a message.
type MessageState uint8

// Open is a message without an answer: cut off, timed out, or still in flight at a checkpoint. The service may have
// it. Refused is one whose status publish.ok does not list, or that no connection was there for (status 0).
const (
	Open MessageState = iota
	Confirmed
	Refused
)

var states = []string{"open", "confirmed", "refused"}

func (s MessageState) String() string { return states[s] }

// MarshalText writes the name of a state.
func (s MessageState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name of a state.
func (s *MessageState) UnmarshalText(text []byte) error {
	i := slices.Index(states, string(text))
	if i < 0 {
		return fmt.Errorf("no message is %.40q", text)
	}
	*s = MessageState(i) //nolint:gosec // G115: an index of states
	return nil
}

// Message is one message that was sent. Both times are microseconds since 1970; SentUS is up to half a millisecond
// early, AnsweredUS up to one late, so that the true times lie between them.
type Message struct {
	SentUS     int64
	AnsweredUS int64  // 0: no answer
	Status     uint16 // of HTTP, where the message was refused; 0: none
	State      MessageState
}

// Failure is one kind of what was not confirmed, and the first of its kind.
type Failure struct {
	State  MessageState `json:"state"`
	Status uint16       `json:"status,omitempty"` // 0: no answer
	Idle   bool         `json:"idle,omitempty"`   // of Open: the connection was closed as idle while the message was being sent
	Count  uint64       `json:"count"`
	Topic  int          `json:"topic"`  // of the first: index into Topics
	Number uint64       `json:"number"` // of the first, from 1
	Text   string       `json:"text,omitempty"`
}

// PublishSums are counts of messages. Each that was sent is confirmed, refused or open.
type PublishSums struct {
	Sent, Confirmed, Refused, Open uint64
	Late                           uint64 // sent over LateAfter behind the schedule
	MaxLagUS                       int64  // furthest behind the schedule
}

// Due is when message i is due, in microseconds since 1970.
func (p *Published) Due(i uint64) int64 {
	return p.StartedUS + int64(math.Round(float64(i)*1e6/p.Rate))
}

// due is when the nth message of a topic is due, from 0.
func (p *Published) due(topic, n int) int64 {
	return p.Due(clamp.Uint64(n)*uint64(len(p.Topics)) + clamp.Uint64(topic))
}

// Count is how many messages were sent.
func (p *Published) Count() (n uint64) {
	for i := range p.sent {
		n += clamp.Uint64(p.sent[i].count)
	}
	return n
}

// Sent is how many messages of a topic were sent: they have the numbers from 1 to that.
func (p *Published) Sent(topic int) int { return p.sent[topic].count }

// Confirmed is how many messages of a topic the service confirmed.
func (p *Published) Confirmed(topic int) (n uint64) {
	for c := p.sent[topic]; c.count > 0; {
		if c.next().state == Confirmed {
			n++
		}
	}
	return n
}

// Sums counts all messages. It goes over all of them.
func (p *Published) Sums() (sums PublishSums) {
	for i := range p.sent {
		for c := p.sent[i]; c.count > 0; {
			m := c.next()
			lag := int64(m.lag) * unitUS //nolint:gosec // G115: at most mostUnits
			sums.Sent++
			sums.MaxLagUS = max(sums.MaxLagUS, lag)
			if lag >= LateAfter.Microseconds() {
				sums.Late++
			}
			switch m.state {
			case Confirmed:
				sums.Confirmed++
			case Refused:
				sums.Refused++
			case Open:
				sums.Open++
			}
		}
	}
	return sums
}

// Topic is what was sent to a topic, by number − 1. It is made once, and not to be changed.
func (p *Published) Topic(i int) []Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.decoded == nil {
		p.decoded = make([][]Message, len(p.Topics))
	}
	if p.decoded[i] == nil {
		p.decoded[i] = p.decode(i)
	}
	return p.decoded[i]
}

func (p *Published) decode(topic int) []Message {
	c := p.sent[topic]
	out := make([]Message, c.count)
	for n := range out {
		m := c.next()
		sent := p.due(topic, n) + int64(m.lag)*unitUS //nolint:gosec // G115: at most mostUnits
		out[n] = Message{SentUS: sent, Status: m.status, State: m.state}
		if m.state == Confirmed || m.status != 0 {
			out[n].AnsweredUS = sent + int64(m.answer)*unitUS //nolint:gosec // G115: at most mostUnits
		}
	}
	return out
}

// Refusals are the kinds of refused messages, those of the earliest first.
func (p *Published) Refusals() []Failure { return p.failed(Refused) }

// Unanswered are the kinds of open messages, those of the earliest first, without those in flight at a checkpoint.
func (p *Published) Unanswered() []Failure { return p.failed(Open) }

func (p *Published) failed(state MessageState) (out []Failure) {
	for _, f := range p.Failed {
		if f.State == state {
			out = append(out, f)
		}
	}
	return out
}
