package verdict

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// streamMargin is the time after the start of a stream, and before its end, in which no message is expected on it. A
// message that is published in that time may or may not reach the stream. For a publisher on another host, the delay of
// the fastest message extends the margin. That delay approximates the difference between the two clocks.
const streamMargin = time.Second

// arrivalSpread is the time by which a message may arrive before its assumed publish time (see messagesFor).
const arrivalSpread = 100 * time.Millisecond

// comparePublished compares the messages that the ith client received with the messages published to its topic. Without
// a publisher, it compares them with the messages that other clients received (see compareClients). It returns the
// record of the client with the losses added. A message is expected if the service confirmed it and one of these
// conditions is met:
//   - a stream was open from the margin before the message was published until the margin after it was confirmed;
//   - the message was published between two streams, and the second one resumed the first;
//   - the service keeps the order, and messages before and after this one arrived on one stream or on streams that
//     each resumed the previous one.
//
// An expected message that did not arrive is lost.
func (s *Streams) comparePublished(i int, r *shard.Connection) *shard.Connection {
	if s.comparedTopics != nil {
		return s.compareClients(i, r)
	}
	topic, messages, ok := s.m.Topic(r)
	if !ok {
		return r
	}
	return s.compareMessages(i, r, messages, s.topics[topic], nil)
}

// compareMessages compares the ith client with the messages of its topic. certainFrom has, for each stream, the
// time from which its position in the feed was known (see feed.Correction); nil: all positions are known.
func (s *Streams) compareMessages(i int, r *shard.Connection, messages []shard.Message, topic *Topic, certainFrom []ledger.Instant) *shard.Connection {
	a := s.accountOf(r, messages, certainFrom)
	if t := s.comparedTopics[topic.Name]; t != nil && t.alignment.HasRepeatedContent() {
		a.ordered = false // messages with equal content are interchangeable, so the first and the last number of a span are uncertain
	}
	lost := s.attributeToCuts(i, &a, a.lostNumbers())
	s.Messages.NotExpected += a.notExpected
	if a.pending > 0 {
		s.pendingClients++
		s.delay = max(s.delay, a.transit)
	}
	if a.premature {
		s.prematureTexts = append(s.prematureTexts, fmt.Sprintf("%s received message %d of topic %s before it was published: the message is from another run with the same marker (%s)", r.ID, r.Last, topic.Name, s.m.Plan.Marker))
	}
	s.addCoverage(&a, topic)
	if len(lost) > 0 || a.unpublished > 0 || a.undecided > 0 {
		r = s.applyAccount(i, &a, lost)
	}
	topic.add(r)
	return r
}

// An account compares the expected messages of one client with the received ones. int64 times are in microseconds
// since 1970.
type account struct {
	r            *shard.Connection
	messages     []shard.Message // of the topic
	ordered      bool            // the service keeps the order, so a message that arrived proves that earlier ones were sent
	margin       time.Duration   // see streamMargin
	spans        []span          // times in which messages were expected
	tolerance    time.Duration   // see arrivalSpread; 0: the publisher recorded when messages were sent
	isMarginLong bool            // margin exceeds streamMargin by over a quarter of the time that a stream was open
	startedUS    int64           // start of the runner
	lastEnd      int64           // end of the last listed stream, less the margin
	delay        time.Duration   // delay of the last message that arrived; 0: unknown
	transit      time.Duration   // the same, or bufferDelay of Streams if that is longer
	disconnected bool            // the service resumes streams, and the client was disconnected at the end for longer than the margin
	undecided    uint64          // missing messages that may or may not have been expected
	pending      uint64          // the part of undecided that may have been in transit at the end of the run
	premature    bool            // the last message arrived before it was published
	notExpected  uint64          // missing messages that were confirmed, but not expected
	unpublished  uint64          // messages that arrived and were not published
}

// A span is a time in which messages were expected, on one stream or on several that each resumed the previous one.
// first and last are the lowest and the highest number that arrived in that time; both are 0 if none arrived.
type span struct {
	from, to    int64
	first, last uint64
}

func (s *span) encloses(numbers ledger.Range) bool {
	return s.first > 0 && s.first < numbers[0] && numbers[1] < s.last
}

func (s *span) addNumbers(stream *ledger.Span) {
	if stream.First > 0 && (s.first == 0 || stream.First < s.first) {
		s.first = stream.First
	}
	s.last = max(s.last, stream.Last)
}

// accountOf returns the account of a client before its missing messages are assessed (see lostNumbers).
func (s *Streams) accountOf(r *shard.Connection, messages []shard.Message, certainFrom []ledger.Instant) account {
	runner := &s.m.Runners[r.Runner]
	margin := streamMargin
	if fastest, ok := runner.Fastest(); ok && s.comparedTopics == nil && s.m.PublisherOf(r.Runner).Host != runner.Host {
		margin += fastest.Abs()
	}
	a := account{r: r, messages: messages, startedUS: runner.StartedUS, margin: margin}
	if s.comparedTopics != nil {
		a.margin, a.tolerance = s.streamMarginOf(r), arrivalSpread
		margin = a.margin
	}
	a.ordered = !s.m.Service.AnyOrder && r.Last <= uint64(len(messages)) // r.Last is higher only if the service changed a number
	for i, stream := range r.Spans {
		to := stream.To
		if to == 0 { // the runner ended early
			to = r.LastAt
		}
		from := stream.From + margin
		if certainFrom != nil {
			from = max(from, certainFrom[i])
		}
		current := span{from: runner.At(from).UnixMicro(), to: runner.At(to - margin).UnixMicro()}
		isTooShort := i == len(r.Spans)-1 && to-stream.From < margin // the run ended before the missed messages could arrive
		if last := len(a.spans) - 1; !stream.Resumed || last < 0 {
			a.spans = append(a.spans, current)
		} else if !isTooShort {
			a.spans[last].to = current.to
		}
		a.spans[len(a.spans)-1].addNumbers(&stream)
		a.lastEnd = current.to
		if extension := margin - streamMargin; to-stream.From > 2*streamMargin && 4*extension > to-stream.From {
			a.isMarginLong = true
		}
	}
	a.delay = a.lastDelay(runner)
	if s.comparedTopics == nil && r.MaxLateness > 0 { // MaxLateness of compared clients depends on send times of the service
		a.delay = min(a.delay, r.MaxLateness)
	}
	a.delay = max(a.delay-(a.margin-streamMargin), 0)
	a.transit = max(a.delay, s.bufferDelay)
	if o := r.LastOutage; r.IsDisconnected() && s.m.Service.Resumes() {
		a.disconnected = o.To-o.From > margin
	}
	if n := r.Last; n > 0 && n <= uint64(len(messages)) && r.Corrupted == 0 { // otherwise r.Last may be the number of a corrupted message
		a.premature = runner.At(r.LastAt+margin).UnixMicro() < messages[n-1].SentUS
	}
	a.unpublished = countAbove(r, max(uint64(len(messages)), max(r.First, 1)-1))
	return a
}

// countAbove returns how many messages with numbers above a limit arrived at a client. It omits the corrupted
// messages that the ledger assumed to have such a number, because the ledger has counted them. A corrupted message
// without a finding may have any number, so it is omitted, too.
func countAbove(r *shard.Connection, limit uint64) uint64 {
	if r.First == 0 || r.Last <= limit {
		return 0
	}
	n := r.Last - limit
	for _, hole := range r.Holes {
		if hole[1] > limit {
			n -= min(hole[1]-max(hole[0], limit+1)+1, n)
		}
	}
	withoutFinding := r.Corrupted - min(r.Unplaced, r.Corrupted)
	for _, f := range r.Findings {
		if f.Kind != ledger.KindCorrupted || f.From == 0 {
			continue
		}
		withoutFinding -= min(1, withoutFinding)
		if f.From > limit {
			n -= min(1, n)
		}
	}
	return n - min(n, withoutFinding)
}

// lastDelay returns the delay of the last message by the clocks of publisher and runner, or 0 if it is unknown.
func (a *account) lastDelay(runner *shard.Runner) time.Duration {
	r := a.r
	if r.Last == 0 || r.Last > uint64(len(a.messages)) || len(r.Spans) == 0 || r.LastAt <= r.Spans[len(r.Spans)-1].From {
		return 0 // for example, nothing arrived on the last stream, and LastAt is the start of that stream
	}
	return runner.At(r.LastAt).Sub(time.UnixMicro(a.messages[r.Last-1].SentUS))
}

// mayBePending reports whether a message may have been in transit at the end of the run: no later message arrived, and
// its age was under 1.5 times the delay of the last message that arrived. If a buffer held messages for longer, that
// time replaces the delay (docs/accounting.md).
func (a *account) mayBePending(number uint64) bool {
	return number > a.r.Last && a.messages[number-1].SentUS > a.lastEnd+(a.margin-a.transit*3/2).Microseconds()
}

// lostNumbers returns the numbers of the expected messages that did not arrive. It omits a number that may belong to a
// message with an unknown number (see couldBe). It also sets the counts of the account (see expects).
func (a *account) lostNumbers() (out []ledger.Range) {
	published := uint64(len(a.messages))
	missing := []ledger.Range{{1, published}}
	if a.r.First > 0 || a.r.Last > 0 {
		missing = append([]ledger.Range{{1, a.r.First - 1}}, a.r.Holes...)
		missing = append(missing, ledger.Range{a.r.Last + 1, published})
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i][0] < missing[j][0] })
	unplaced := a.unplacedTimes()
	for _, numbers := range missing {
		isEnclosed := a.ordered && slices.ContainsFunc(a.spans, func(s span) bool { return s.encloses(numbers) })
		for n := numbers[0]; n >= 1 && n <= min(numbers[1], published); n++ {
			if !a.expects(n, isEnclosed) {
				continue
			}
			if i := slices.IndexFunc(unplaced, func(arrival time.Time) bool { return a.couldBe(n, arrival) }); i >= 0 {
				unplaced = slices.Delete(unplaced, i, i+1)
				continue
			}
			out = ledger.AppendNumber(out, n)
		}
	}
	return out
}

// unplacedTimes returns the arrival times of messages whose numbers are unknown.
func (a *account) unplacedTimes() (times []time.Time) {
	all := a.r.UnplacedAt
	if d := a.r.Deviations; d != nil {
		all = slices.Concat(all, d.UnknownAt)
	}
	for _, at := range all {
		times = append(times, time.UnixMicro(a.startedUS).Add(at))
	}
	return times
}

// couldBe reports whether a message with an unknown number, which arrived at the given time, may have the given number.
// The arrival may precede the publish time by at most a.margin - streamMargin + a.tolerance, and follow it by
// at most a.delay + a.margin.
func (a *account) couldBe(number uint64, arrival time.Time) bool {
	elapsed := arrival.Sub(time.UnixMicro(a.messages[number-1].SentUS))
	return elapsed >= streamMargin-a.margin-a.tolerance && elapsed <= a.delay+a.margin
}

// expects reports whether a message that did not arrive was expected. If the message was confirmed, but the result is
// false, expects counts it as undecided or not expected. isEnclosed: messages before and after it arrived in one span.
func (a *account) expects(number uint64, isEnclosed bool) bool {
	m := &a.messages[number-1]
	if m.State != shard.Confirmed {
		return false
	}
	if isEnclosed {
		return true
	}
	for _, s := range a.spans {
		switch {
		case m.SentUS < s.from || m.SentUS > s.to:
		case a.mayBePending(number):
			a.pending++
			a.undecided++
			return false
		case m.AnsweredUS > s.to: // the service confirmed the message later than the margin before the end of the stream
			a.undecided++
			return false
		default:
			return true
		}
	}
	if a.undecidedFrom() <= m.SentUS {
		a.undecided++
	} else {
		a.notExpected++
	}
	return false
}

// applyAccount returns a copy of the record of the ith client with the results of its account.
func (s *Streams) applyAccount(i int, a *account, lost []ledger.Range) *shard.Connection {
	r := s.mutableConnection(i, a.r)
	for _, numbers := range lost {
		count := numbers[1] - numbers[0] + 1
		r.Lost += count
		f := ledger.Finding{Kind: ledger.KindLost, From: numbers[0], To: numbers[1], Count: count, At: a.instant(numbers[0]), Source: ledger.SourcePublisher}
		if s.comparedTopics != nil {
			f.Source, f.Note = ledger.SourceSubscribers, s.recipients(a.r, numbers[0])
		}
		r = s.addFinding(i, r, f)
	}
	if a.unpublished > 0 { // for example, the service changed a number
		corrupted := min(a.unpublished, r.Received)
		r.Received -= corrupted
		r.Corrupted += corrupted
		r = s.addFinding(i, r, ledger.Finding{Kind: ledger.KindCorrupted, From: r.Last, At: r.LastAt, Note: unpublishedNote})
	}
	r.Undetectable += a.undecided
	return r
}

const unpublishedNote = "it was never published"

// notExpectedReason states why confirmed messages that did not arrive were not expected.
var notExpectedReason = fmt.Sprintf("published within %s of the start or the end of a stream, or while the client had no stream", format.Duration(streamMargin))

func notExpectedText(n uint64) string {
	return format.Plural(n, "more did not arrive and was not expected", "more did not arrive and were not expected")
}

// deliveryChecks returns the checks that no message arrived before it was published, and that most messages could be
// checked. For clients that are compared with each other, comparabilityCheck replaces the first one. For the numbers of
// a topic, only the second one applies. In other cases without a publisher, deliveryChecks returns nil.
func (s *Streams) deliveryChecks() []Check {
	if s.comparedTopics != nil {
		return []Check{s.comparabilityCheck().AsDoubt(), s.coverageCheck().AsDoubt().notJudgedIf(s.coverage.lowestID == "", "no client had an open stream while others received messages")}
	}
	if s.checksTopicNumbers() {
		return []Check{s.coverageCheck().AsDoubt().notJudgedIf(s.coverage.lowestID == "", s.reasonNoMessage())}
	}
	if s.Messages.Published == nil {
		return nil
	}
	earlyCheck := Check{
		ID: CheckEarly, Name: "messages received before publishing", Limit: "0", Actual: firstText(s.prematureTexts, "none"), Pass: len(s.prematureTexts) == 0,
		Why: "messages of an earlier run can hide losses", Reasons: s.prematureTexts,
	}
	return []Check{
		earlyCheck.AsDoubt().notJudgedIf(!s.hasMessages(), s.reasonNoMessage()),
		s.coverageCheck().AsDoubt().notJudgedIf(s.coverage.lowestID == "", "no client had an open stream while messages were confirmed"),
	}
}

// undecidedFrom returns the time from which it is unknown whether missing messages were expected; math.MaxInt64: never.
func (a *account) undecidedFrom() int64 {
	switch {
	case a.isMarginLong:
		return 0
	case a.r.UnlistedSpans > 0 || a.disconnected:
		return a.lastEnd + 1
	}
	return math.MaxInt64
}

// instant returns when a message was published, as an instant of the runner.
func (a *account) instant(number uint64) ledger.Instant {
	return time.Duration(a.messages[number-1].SentUS-a.startedUS) * time.Microsecond
}
