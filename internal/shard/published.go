package shard

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
)

// The bounds of one publisher. A message usually needs two bytes of memory, and 24 during the verdict.
const (
	MaxPublished = 36_000_000 // ten hours of 1000 messages per second
	MaxTopics    = 10_000
	MaxRate      = 10_000 // messages per second
)

// LateAfter is the minimum lag behind the schedule at which a message counts as sent late.
const LateAfter = time.Second

// Published holds the messages that the publisher of a run sent, and the answers of the service. Message i (from 0)
// belongs to topic i mod len(Topics), has number i div len(Topics) + 1 there, and is due at Due(i). A Published from
// PublishLog.Published or Read does not change, except for the cache of Topic.
type Published struct {
	Topics    []string `json:"topics"`
	Rate      float64  `json:"rate"`            // messages per second over all topics
	StartedUS int64    `json:"started_unix_us"` // due time of the first message
	Planned   uint64   `json:"planned"`         // number of planned messages
	Messages  uint64   `json:"sent"`            // number of sent messages
	Finished  bool     `json:"finished"`        // the publisher has sent all messages and waited for their answers

	Lag    *Histogram       `json:"lag"`              // sent − due, of messages with an answer or an error
	Answer *Histogram       `json:"answer"`           // answered − sent, of messages with an answer
	Failed []PublishFailure `json:"failed,omitempty"` // unconfirmed messages by kind, except messages in flight
	// MaxBodyUS is the longest time from the headers of an answer to the end of its body. The next message of the topic
	// waits for that end.
	MaxBodyUS int64 `json:"max_body_us,omitempty"`

	columns []column // by topic

	mu      sync.Mutex
	decoded [][]Message // cache of Topic
}

// A MessageState is the outcome of a message.
type MessageState uint8

// An Open message has no answer, because its connection closed, it timed out, or it was in flight at a checkpoint. The
// service may have received it. A Refused message has an answer with a status that publish.ok does not list, or could
// not be sent (status 0).
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
		return fmt.Errorf("unknown state of a message: %.40q", text)
	}
	*s = MessageState(i) // #nosec G115 -- an index of states
	return nil
}

// A Message is a sent message. Both times are microseconds since 1970. SentUS is rounded down and AnsweredUS up, each
// by less than half a millisecond, so that the true times lie between them.
type Message struct {
	SentUS     int64
	AnsweredUS int64  // 0: no answer
	Status     uint16 // HTTP status of a refused message; 0: none
	State      MessageState
}

// A PublishFailure counts the unconfirmed messages of one kind, and describes the first of them.
type PublishFailure struct {
	State  MessageState `json:"state"`
	Status uint16       `json:"status,omitempty"` // 0: no answer
	Idle   bool         `json:"idle,omitempty"`   // of Open: the server may have closed the idle connection
	Local  bool         `json:"local,omitempty"`  // of Refused: the publisher had no port, descriptor or IPv6 address
	Count  uint64       `json:"count"`
	Topic  int          `json:"topic"`  // of the first: index into Topics
	Number uint64       `json:"number"` // of the first, from 1
	Text   string       `json:"text,omitempty"`
}

// PublishSums has counts of messages. Each sent message is confirmed, refused or open.
type PublishSums struct {
	Sent, Confirmed, Refused, Open uint64
	Late                           uint64 // sent at least LateAfter behind the schedule
	MaxLagUS                       int64  // maximum lag behind the schedule
}

// settle counts the outcome of a message and its lag behind the schedule, but not the message as sent.
func (s *PublishSums) settle(state MessageState, lagUS int64) {
	s.MaxLagUS = max(s.MaxLagUS, lagUS)
	if lagUS >= LateAfter.Microseconds() {
		s.Late++
	}
	switch state {
	case Confirmed:
		s.Confirmed++
	case Refused:
		s.Refused++
	case Open:
		s.Open++
	}
}

// Due returns the time at which message i is due, in microseconds since 1970.
func (p *Published) Due(i uint64) int64 {
	return p.StartedUS + int64(math.Round(float64(i)*1e6/p.Rate))
}

// due returns the time at which message n of a topic is due. n starts at 0.
func (p *Published) due(topic, n int) int64 {
	return p.Due(clamp.Uint64(n)*uint64(len(p.Topics)) + clamp.Uint64(topic))
}

// Sent returns the number of messages that were sent to a topic. They are numbered from 1.
func (p *Published) Sent(topic int) int { return p.columns[topic].count }

// Sums returns the counts of all messages. It decodes each message.
func (p *Published) Sums() (sums PublishSums) {
	for i := range p.columns {
		for m := range p.columns[i].all() {
			sums.Sent++
			sums.settle(m.state, int64(m.lag)*unitUS) // #nosec G115 -- at most maxUnits
		}
	}
	return sums
}

// Topic returns the messages of a topic, indexed by number − 1. The caller must not change them.
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
	out := make([]Message, 0, p.columns[topic].count)
	for m := range p.columns[topic].all() {
		sent := p.due(topic, len(out)) + int64(m.lag)*unitUS // #nosec G115 -- at most maxUnits
		message := Message{SentUS: sent, Status: m.status, State: m.state}
		if m.state == Confirmed || m.status != 0 {
			message.AnsweredUS = sent + int64(m.answer)*unitUS // #nosec G115 -- at most maxUnits
		}
		out = append(out, message)
	}
	return out
}

// Refusals returns the kinds of refused messages, in the order of their first messages.
func (p *Published) Refusals() []PublishFailure { return p.failures(Refused) }

// Unanswered returns the kinds of open messages, in the order of their first messages. It omits messages in flight.
func (p *Published) Unanswered() []PublishFailure { return p.failures(Open) }

func (p *Published) failures(state MessageState) (out []PublishFailure) {
	for _, f := range p.Failed {
		if f.State == state {
			out = append(out, f)
		}
	}
	return out
}

// check counts the messages, and returns an error for values that no publisher has.
func (p *Published) check() error {
	switch {
	case len(p.Topics) == 0 || len(p.Topics) > MaxTopics:
		return fmt.Errorf("number of topics must be from 1 to %d, got %d", MaxTopics, len(p.Topics))
	case !(p.Rate > 0 && p.Rate <= MaxRate):
		return fmt.Errorf("rate must be above 0 and at most %d messages per second, got %g", MaxRate, p.Rate)
	case p.Planned > MaxPublished || float64(p.Planned)/p.Rate > maxLength.Seconds():
		return fmt.Errorf("impossible plan of the publisher: %s at %g per second", format.Plural(p.Planned, "message", "messages"), p.Rate)
	case p.StartedUS < 0 || p.StartedUS > math.MaxInt64/4:
		return fmt.Errorf("started_unix_us must be a time, got %d", p.StartedUS)
	case p.MaxBodyUS < 0 || p.MaxBodyUS > maxLength.Microseconds():
		return fmt.Errorf("max_body_us must be from 0 to %d, got %d", maxLength.Microseconds(), p.MaxBodyUS)
	case p.Lag == nil || p.Answer == nil:
		return errors.New("lag or answer is missing")
	case len(p.Failed) > maxKinds:
		return fmt.Errorf("failures must have at most %d kinds, got %d", maxKinds, len(p.Failed))
	}
	sent := uint64(0)
	for i, name := range p.Topics {
		if len(name) > maxText {
			return newTooLongError(name)
		}
		if !p.columns[i].countMessages() {
			return fmt.Errorf("unreadable message %d of %.40q", p.columns[i].count+1, name)
		}
		due := max((int(p.Planned)-i+len(p.Topics)-1)/len(p.Topics), 0)
		if p.columns[i].count > due {
			return fmt.Errorf("%s sent to %.40q, but %s due",
				format.Plural(p.columns[i].count, "message was", "messages were"), name, format.Plural(due, "was", "were"))
		}
		sent += clamp.Uint64(p.columns[i].count)
	}
	if sent != p.Messages {
		return fmt.Errorf("%s sent, but %s listed", format.Plural(p.Messages, "message was", "messages were"), format.Plural(sent, "is", "are"))
	}
	return p.checkFailures()
}

func (p *Published) checkFailures() error {
	for _, f := range p.Failed {
		switch {
		case f.State != Open && f.State != Refused || f.Status > maxStatus:
			return fmt.Errorf("impossible failure with the state %s and the status %d", f.State, f.Status)
		case f.Count < 1 || f.Count > p.Planned:
			return fmt.Errorf("number of failures must be from 1 to %d, got %d", p.Planned, f.Count)
		case f.Topic < 0 || f.Topic >= len(p.Topics) || f.Number < 1 || f.Number > clamp.Uint64(p.Sent(f.Topic)):
			return fmt.Errorf("impossible first message of a failure: message %d of topic %d was not sent", f.Number, f.Topic)
		case len(f.Text) > maxText:
			return newTooLongError(f.Text)
		}
	}
	return nil
}
