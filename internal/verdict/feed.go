package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/ledger/feed"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A comparedTopic is a topic whose streams are compared with each other, because its messages carry no numbers.
type comparedTopic struct {
	*shard.Feed
	alignment           *feed.Feed
	topic               *Topic
	clients             int
	uncertainClients    []string // clients for which it is unknown which messages they received
	hasSingleRecipients bool     // most messages reached only one client each, so clients cannot be compared

	runner   int             // messages has times on the clock of the runner with this index; -1: none
	messages []shard.Message // the last result of messagesFor
}

// alignFeeds numbers the messages of compared topics. It collects the packed records of each topic first, because
// numbering passes over them several times.
func (s *Streams) alignFeeds() {
	clients := map[string]*shard.Connections{}
	feeds := s.m.Feeds()
	for _, f := range feeds {
		clients[f.Topic] = new(shard.Connections)
	}
	for _, c := range s.m.Subscribers() {
		if topic, ok := s.m.FeedTopic(c); ok {
			clients[topic].Add(c)
		}
	}
	for _, f := range feeds {
		s.align(f, func(yield func(int, *ledger.Record) bool) {
			for _, c := range clients[f.Topic].All() {
				if !yield(f.LogOf[c.Runner], &c.Record) {
					return
				}
			}
		})
	}
}

// align numbers the messages of a topic, and adds the topic to the run.
func (s *Streams) align(f *shard.Feed, records feed.Records) {
	t := &comparedTopic{Feed: f, runner: -1, topic: &Topic{Name: f.Topic}}
	t.alignment = feed.Align(f.Logs, s.m.Service.AnyOrder, s.m.Service.Repeats, records)
	t.hasSingleRecipients = t.alignment.HasSingleRecipients(records)
	for range records {
		t.clients++
	}
	for n := range t.alignment.Messages {
		if t.isExpected(n) {
			t.topic.confirmedNumbers = append(t.topic.confirmedNumbers, clamp.Uint64(n)+1)
		} else if count := uint64(t.alignment.Messages[n].Count); 2*count > clamp.Uint64(t.clients) && !t.hasSingleRecipients {
			// Most streams began with this message, so the other clients may have lost it.
			s.Messages.NotExpected += max(count, clamp.Uint64(t.clients)) - count
		}
	}
	t.topic.Messages = clamp.Uint64(len(t.topic.confirmedNumbers))
	if s.comparedTopics == nil {
		s.comparedTopics = map[string]*comparedTopic{}
	}
	s.comparedTopics[f.Topic], s.topics[f.Topic] = t, t.topic
	if len(s.Messages.Topics) < maxTopics {
		s.Messages.Topics = append(s.Messages.Topics, t.topic)
	}
}

// isExpected reports whether every connected client was expected to receive the message with the given index.
func (t *comparedTopic) isExpected(index int) bool {
	return t.alignment.Messages[index].Live && !t.hasSingleRecipients
}

// messagesFor returns the messages of the topic, with times on the clock of the runner with the given index. The
// publish time of a message is unknown; SentUS and AnsweredUS are bounds of it, derived from the first arrival.
func (t *comparedTopic) messagesFor(runner *shard.Runner, index int) []shard.Message {
	if t.runner == index {
		return t.messages
	}
	t.runner, t.messages = index, make([]shard.Message, len(t.alignment.Messages))
	lag := t.alignment.Lag(t.LogOf[index]) // the delay of the runner, or the difference of the clocks
	for n := range t.messages {
		at, doubt := t.alignment.ArrivedAt(n, t.LogOf[index]), t.alignment.Messages[n].Doubt
		t.messages[n] = shard.Message{
			SentUS: runner.At(at - max(lag, 0)).UnixMicro(), AnsweredUS: runner.At(at + doubt - min(lag, 0)).UnixMicro(), State: shard.Open,
		}
		if t.isExpected(n) {
			t.messages[n].State = shard.Confirmed
		}
	}
	return t.messages
}

// comparedTopicOf returns the topic of a client; nil if its clients are not compared with each other.
func (s *Streams) comparedTopicOf(r *shard.Connection) *comparedTopic {
	name, ok := s.m.FeedTopic(r)
	if !ok {
		return nil
	}
	return s.comparedTopics[name]
}

func (s *Streams) compareClients(i int, r *shard.Connection) *shard.Connection {
	t := s.comparedTopicOf(r)
	if t == nil {
		return r
	}
	t.alignment.JoinTime = s.streamMarginOf(r)
	correction := t.alignment.Correct(t.LogOf[r.Runner], &r.Record)
	if correction.Uncertain {
		t.uncertainClients = append(t.uncertainClients, r.ID)
	}
	if correction.Record != &r.Record {
		r = s.mutableConnection(i, r)
		r.Record = *correction.Record
	}
	r = s.compareMessages(i, r, t.messagesFor(&s.m.Runners[r.Runner], r.Runner), t.topic, correction.CertainFrom)
	if t.topic.Streams == 1 || r.Arrived() < t.topic.MinReceived {
		t.topic.MinReceived = r.Arrived()
	}
	t.topic.MaxReceived = max(t.topic.MaxReceived, r.Arrived())
	for _, f := range r.Findings {
		if f.Kind == ledger.KindLost || f.Kind == ledger.KindDuplicated || f.Kind == ledger.KindReordered || f.Kind == ledger.KindCorrupted {
			t.addDiverged(s.m.Runners[r.Runner].At(f.At), r.ID)
		}
	}
	return r
}

// streamMarginOf returns the stream margin of a client (see streamMargin). If contents repeat, the longest stall of
// a runner extends the margin: after a stall, the first message of a stream remains unknown for longer.
func (s *Streams) streamMarginOf(r *shard.Connection) time.Duration {
	if t := s.comparedTopicOf(r); t != nil && t.alignment.HasRepeatedContent() {
		return streamMargin + useOf(s.m).Stall
	}
	return streamMargin
}

func (t *comparedTopic) addDiverged(at time.Time, id string) {
	d := &t.topic.Diverged
	if !slices.Contains(*d, id) && len(*d) < maxDiverged {
		*d = append(*d, id)
	}
	if from := format.Unix(at); t.topic.DivergedUnix == 0 || from < t.topic.DivergedUnix {
		t.topic.DivergedUnix = from
	}
}

const maxDiverged = 10

// recipients states how many clients of a topic received a message: "3 of 4 clients".
func (s *Streams) recipients(r *shard.Connection, number uint64) string {
	t := s.comparedTopicOf(r)
	if t == nil || number == 0 || number > clamp.Uint64(len(t.alignment.Messages)) {
		return ""
	}
	return fmt.Sprintf("%d of %s", t.alignment.Messages[number-1].Count, format.Count(t.clients, "client"))
}

// monotonyReason returns a sentence if the topic has too few different contents to compare its clients; otherwise "".
func (t *comparedTopic) monotonyReason() string {
	contents, interval := t.alignment.Monotonous()
	if contents == 0 {
		return ""
	}
	return fmt.Sprintf("the messages%s have %s and arrive every %s on average, so it is unknown which of them a client lacks: set message.same to a part that differs between messages",
		t.topic.subject(), format.Plural(contents, "content", "different contents"), format.Duration(interval))
}

func (t *comparedTopic) uncertainReason() string {
	n := len(t.uncertainClients)
	return fmt.Sprintf("content repeats, so it is unknown which messages %s%s %s (%s%s): set message.same to a part that differs between messages",
		format.Count(n, "client"), t.topic.subject(), format.Form(n, "lacks", "lack"), format.Form(n, "", "the first: "), t.uncertainClients[0])
}

// comparabilityCheck returns the check that the clients of each topic received enough of the same messages to compare.
func (s *Streams) comparabilityCheck() Check {
	c := Check{
		ID: CheckComparability, Name: "messages to compare clients", Limit: "per topic, at least 2 clients, and at least as many messages, all unambiguous", Pass: true,
		Why: "with too few or ambiguous messages, losses are undetectable",
	}
	firstUnmet := "" // the counts of the first topic that does not meet the check
	for _, t := range s.Messages.Topics {
		topic, comparison := t.subject(), s.comparedTopics[t.Name]
		c.Actual = fmt.Sprintf("%s for %s%s", format.Count(t.Messages, "message"), format.Count(t.Streams, "client"), topic)
		switch {
		case comparison.hasSingleRecipients:
			c.Reasons = append(c.Reasons, fmt.Sprintf("the clients%s received different messages, most of which reached only one client each: set message.same to the part that is the same for all, or write message: 'unchecked'", topic))
		case comparison.monotonyReason() != "":
			c.Reasons = append(c.Reasons, comparison.monotonyReason())
		case comparison.alignment.SharedCopies > 0 && comparison.alignment.Repeats && comparison.alignment.HasRepeatedContent():
			c.Reasons = append(c.Reasons, fmt.Sprintf("content repeats, and some clients%s received %s that others did not: %s; set message.same to a part that differs between messages",
				topic, format.Plural(int64(comparison.alignment.SharedCopies), "message", "messages"),
				format.Form(comparison.alignment.SharedCopies, "it may be a copy, or the others may have lost it", "they may be copies, or the others may have lost them")))
		case len(comparison.uncertainClients) > 0:
			c.Reasons = append(c.Reasons, comparison.uncertainReason())
		case t.Streams < 2:
			c.Reasons = append(c.Reasons, fmt.Sprintf("a comparison needs at least 2 clients, got %d%s: set CONNECTIONS to at least 2 for each topic", t.Streams, topic))
		case t.Messages < clamp.Uint64(t.Streams):
			c.Reasons = append(c.Reasons, fmt.Sprintf("%s%s received %s: hold the streams for longer (SECONDS), or publish messages to the service during the run",
				format.Count(t.Streams, "client"), topic, format.Count(t.Messages, "message")))
		default:
			continue
		}
		if c.Pass {
			c.Pass, firstUnmet = false, c.Actual
		}
	}
	c.Actual = cmp.Or(firstUnmet, c.Actual)
	return c
}

// doubtsOfSubscribers states which losses a comparison of clients cannot detect.
func (s *Streams) doubtsOfSubscribers() []string {
	reasons := []string{
		"the loss of a message that reached no client cannot be detected",
		fmt.Sprintf("a message that arrived within %s of the start or the end of a stream is not expected on it", format.Duration(streamMargin)),
	}
	if n := s.Messages.NotExpected; n > 0 {
		reasons = append(reasons, fmt.Sprintf("%s not arrive and %s not expected: other clients received %s within %s of the start or the end of such a client's stream, while that client had no stream, or before it was known with which message that client's stream began",
			format.Plural(n, "message did", "messages did"), format.Form(n, "was", "were"), format.Form(n, "it", "them"), format.Duration(streamMargin)))
	}
	if s.pendingClients > 0 {
		reasons = append([]string{fmt.Sprintf("the last messages of %s may still have been in transit at the end of the run: messages arrived up to %s later than at other clients",
			format.Plural(s.pendingClients, "client", "clients"), format.Duration(s.delay))}, reasons...)
	}
	return reasons
}

func (v *Verdict) comparisonSummary() string {
	clients, messages := 0, uint64(0)
	for _, t := range v.Messages.Topics {
		clients, messages = clients+t.Streams, messages+t.Messages
	}
	reconnecting := v.Connections.Reconnecting
	clients = max(clients-reconnecting, 0)
	text := fmt.Sprintf("%s received the same %s", format.Count(clients, "client"), format.Count(messages, v.Service.Noun()))
	if n := len(v.Messages.Topics); n > 1 {
		text = fmt.Sprintf("%s of %s received the same %s of each topic, %s in all", format.Count(clients, "client"), format.Count(n, "topic"), v.Service.Noun()+"s", format.Thousands(messages))
	}
	if reconnecting > 0 {
		text += fmt.Sprintf(", %s reconnecting", format.Thousands(reconnecting))
	}
	if n := v.Messages.NotExpected; n > 0 {
		text += "; " + notExpectedText(n)
	}
	if n := v.Evidence.Undetectable; n > 0 {
		text += fmt.Sprintf("; up to %s could not have been detected", format.Count(n, "loss"))
	}
	return text + "; the loss of a message that reached no client cannot be detected"
}

// subject returns the name of the topic as the end of a phrase; "" if the topic has no name.
func (t *Topic) subject() string {
	if t.Name == "" {
		return ""
	}
	return " of topic " + t.Name
}
