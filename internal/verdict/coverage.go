package verdict

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// minCheckedShare is the smallest share of a topic's confirmed messages that must be checked on each client of the
// topic. A message is checked if its loss would be reported, as missed or as undetectable.
const minCheckedShare = .5

// minMessagesPerStream is the number of messages per stream at which most of them are checked. The messages at the ends
// of a stream are not checked.
const minMessagesPerStream = 6

// A coverage sums up the shares of the confirmed messages that were checked on each client.
type coverage struct {
	lowest   float64 // the lowest share of any client
	lowestID string
	clients  int           // clients with a share below minCheckedShare
	first    string        // a description of the first of these clients
	open     time.Duration // the total duration of the streams of these clients
	streams  int           // the number of the streams of these clients
}

func confirmedNumbers(messages []shard.Message) (numbers []uint64) {
	for i := range messages {
		if messages[i].State == shard.Confirmed {
			numbers = append(numbers, uint64(i)+1)
		}
	}
	return numbers
}

// checkedMessages returns how many of the confirmed messages, given by their numbers, were checked.
func (a *account) checkedMessages(numbers []uint64) (n int) {
	indexAtTime := func(us int64) int { // index of the first message sent at that time or later
		return sort.Search(len(numbers), func(i int) bool { return a.messages[numbers[i]-1].SentUS >= us })
	}
	indexOf := func(number uint64) int { i, _ := slices.BinarySearch(numbers, number); return i }
	undecidedFrom := a.undecidedFrom()
	if a.disconnected && undecidedFrom > a.lastEnd { // messages after the last stream were not checked
		undecidedFrom = math.MaxInt64
	}
	parts := [][2]int{{indexAtTime(undecidedFrom), len(numbers)}} // ranges of indexes, which may overlap
	for _, s := range a.spans {
		parts = append(parts, [2]int{indexAtTime(s.from), indexAtTime(s.to + 1)})
		if a.ordered && s.first > 0 {
			parts = append(parts, [2]int{indexOf(s.first + 1), indexOf(s.last)})
		}
	}
	slices.SortFunc(parts, func(a, b [2]int) int { return a[0] - b[0] })
	end := 0 // end of the ranges that n includes
	for _, part := range parts {
		n += max(part[1]-max(part[0], end), 0)
		end = max(end, part[1])
	}
	return n
}

// addCoverage adds one client. It omits clients without a stream, and clients of a topic without confirmed messages. It
// also omits the clients of a runner that ended early or replaced another one.
func (s *Streams) addCoverage(a *account, topic *Topic) {
	if len(topic.confirmedNumbers) == 0 || len(a.r.Spans) == 0 || !s.m.Runners[a.r.Runner].IsComplete() {
		return
	}
	n := clamp.Uint64(a.checkedMessages(topic.confirmedNumbers))
	s.Messages.Checked += n
	s.coverage.add(a.r, topic, n, clamp.Uint64(len(topic.confirmedNumbers)))
}

// checksTopicNumbers reports whether messages are checked by the numbers of their topic, without a publisher.
func (s *Streams) checksTopicNumbers() bool {
	return s.m.Service.PerTopic && s.Messages.Published == nil
}

// addNumberCoverage adds the clients if messages are checked by the numbers of their topic. It omits the same clients
// as addCoverage. The messages of a topic are those from the lowest to the highest number that any client received.
func (s *Streams) addNumberCoverage() {
	if !s.checksTopicNumbers() {
		return
	}
	topics := map[string]ledger.Range{}
	for _, r := range s.Records() {
		if name, ok := s.m.TopicOf(r); ok && r.First > 0 {
			numbers, known := topics[name]
			if !known {
				numbers[0] = r.First
			}
			topics[name] = ledger.Range{min(numbers[0], r.First), max(numbers[1], r.Last)}
		}
	}
	for _, r := range s.Records() {
		name, ok := s.m.TopicOf(r)
		if numbers, known := topics[name]; ok && known && len(r.Spans) > 0 && s.m.Runners[r.Runner].IsComplete() {
			s.coverage.add(r, &Topic{Name: name}, r.Totals().Expected, numbers[1]-numbers[0]+1)
		}
	}
}

// add adds one client, on which n of the messages of its topic were checked.
func (c *coverage) add(r *shard.Connection, topic *Topic, n, messages uint64) {
	share := float64(n) / float64(messages)
	if c.lowestID == "" || share < c.lowest {
		c.lowest, c.lowestID = share, r.ID
	}
	if share >= minCheckedShare {
		return
	}
	if c.clients++; c.clients == 1 {
		c.first = fmt.Sprintf("%s, %s of %s%s", r.ID, format.Thousands(n), format.Count(messages, "message"), topic.subject())
	}
	c.streams += len(r.Spans)
	for _, stream := range r.Spans {
		c.open += max(stream.To-stream.From, 0)
	}
}

func (s *Streams) coverageCheck() Check {
	c := &s.coverage
	out := Check{
		ID: CheckCoverage, Name: "messages checked per client", Limit: fmt.Sprintf("at least %g %% of the topic's messages on each client", 100*minCheckedShare),
		Actual: "none", Pass: c.clients == 0, Why: "losses of messages that were not checked are undetectable",
	}
	if c.lowestID != "" {
		out.Actual = fmt.Sprintf("lowest: %.0f %% (%s)", math.Floor(100*c.lowest), c.lowestID)
	}
	if !out.Pass {
		cause := ""
		if !s.checksTopicNumbers() {
			cause = ": streams were open for " + format.Duration(c.open/time.Duration(c.streams)) + " on average"
		}
		out.Reasons = []string{fmt.Sprintf("%s could have missed most messages unnoticed (%s%s checked)%s; %s",
			format.Plural(c.clients, "client", "clients"), format.Form(c.clients, "", "the first: "), c.first, cause, s.coverageRemedy())}
	}
	return out
}

// coverageRemedy returns the change of settings that increases the share of checked messages.
func (s *Streams) coverageRemedy() string {
	c, p := &s.coverage, s.Messages.Published
	for _, t := range s.comparedTopics {
		if t.monotonyReason() != "" {
			return "set message.same to a part that differs between messages"
		}
	}
	if s.checksTopicNumbers() {
		return "replace message.seq with message.same, which compares each client with the others"
	}
	if p == nil {
		return "hold streams for longer (SECONDS), so that each client receives more messages"
	}
	needed := math.Ceil(minMessagesPerStream * float64(p.Topics) * float64(c.streams) / max(c.open.Seconds(), 1e-3))
	if !s.m.Service.AnyOrder && needed > p.Rate {
		return fmt.Sprintf("publish at least %.0f messages per second (PUBLISH_RATE), so that each stream receives %d", needed, minMessagesPerStream)
	}
	return fmt.Sprintf("keep each stream open for over %s while messages are published, or let each stream resume the previous one", format.Duration(4*streamMargin))
}
