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

// joinWindow is the time after the start and before the end of a stream in which no message is expected, because a
// message that is published then may or may not reach the stream. If the publisher ran on another host, the window is
// extended by the delay of the fastest message, which bounds the difference of the two clocks.
const joinWindow = time.Second

// arrivalSpread is the tolerance for clients that receive a message earlier than the client whose arrival time counts
// as the send time.
const arrivalSpread = 100 * time.Millisecond

// comparePublished compares the messages that the ith connection received with those published to its topic. A message
// is expected if the service confirmed it and one of these holds:
//   - a stream was open when it was published;
//   - it was published between two streams, and the second one resumed the first;
//   - a message before it and one after it arrived on one stream, and the service keeps the order.
//
// An expected message that did not arrive is lost. A message that the service refused or did not answer is never
// expected.
func (s *Streams) comparePublished(i int, r *shard.Connection) *shard.Connection {
	if s.shared != nil {
		return s.compareShared(i, r)
	}
	topic, messages, ok := s.m.Topic(r)
	if !ok {
		return r
	}
	return s.compareWith(i, r, messages, s.topics[topic], nil)
}

// compareWith compares the messages that the ith connection received with those of its topic. certain has, for each
// stream, the time from which its position among the messages was known; nil: from the start (see feed.Certain).
func (s *Streams) compareWith(i int, r *shard.Connection, messages []shard.Message, sum *Topic, certain []ledger.Instant) *shard.Connection {
	a := s.accountOf(r, messages, certain)
	if t := s.shared[sum.Name]; t != nil && t.aligned.Repeated() {
		a.ordered = false // the first and the last messages of a stream may be different ones with the same content
	}
	lost := s.attributeToCuts(i, &a, a.lostNumbers())
	s.Messages.NotExpected += a.notExpected
	if a.pending > 0 {
		s.pending++
		s.delay = max(s.delay, a.delay)
	}
	if a.premature {
		s.premature = append(s.premature, fmt.Sprintf("%s received message %d of topic %s before it was published: the message is from another run with the same marker (%s)", r.ID, r.Last, sum.Name, s.m.Plan.Marker))
	}
	s.addCoverage(&a, sum)
	if len(lost) > 0 || a.unpublished > 0 || a.undecided > 0 {
		r = s.concludePublished(i, &a, lost)
	}
	sum.add(r)
	return r
}

// An account compares the messages that one connection was expected to receive with those that it received.
type account struct {
	r            *shard.Connection
	messages     []shard.Message
	ordered      bool          // the service keeps the order, so a message that arrived proves that earlier ones were sent
	window       time.Duration // see joinWindow
	spans        []span        // times in which messages were expected, microseconds since 1970
	tolerance    time.Duration // see arrivalSpread; 0: the publisher knows when messages were sent
	clocksDiffer bool          // clocks differ by over a quarter of the time that a stream was open
	startedUS    int64         // when the runner started
	last         int64         // end of the last known span
	delay        time.Duration // of the last message that arrived; 0: not known
	disconnected bool          // the client would have resumed, but was disconnected at the end for longer than the window
	undecided    uint64        // missing messages of which it is unknown whether they were expected
	pending      uint64        // the part of undecided that may have been in transit at the end of the run
	premature    bool          // the last message arrived before it was published
	notExpected  uint64        // missing messages that were confirmed, but not expected
	unpublished  uint64        // messages that arrived and were not published
}

// A span is a time in which messages were expected, on one stream or on a sequence of streams that each resumed the
// previous one. first and last are the lowest and the highest number that arrived in it; 0: none.
type span struct {
	from, to    int64
	first, last uint64
}

// encloses reports whether messages before and after a range of numbers arrived within the span.
func (s *span) encloses(numbers ledger.Range) bool {
	return s.first > 0 && s.first < numbers[0] && numbers[1] < s.last
}

// receive extends first and last by the numbers that arrived on a stream.
func (s *span) receive(open *ledger.Span) {
	if open.First > 0 && (s.first == 0 || open.First < s.first) {
		s.first = open.First
	}
	s.last = max(s.last, open.Last)
}

func (s *Streams) accountOf(r *shard.Connection, messages []shard.Message, certain []ledger.Instant) account {
	runner := &s.m.Runners[r.Runner]
	window := joinWindow
	if fastest, ok := runner.Fastest(); ok && s.shared == nil && s.m.PublisherOf(r.Runner).Host != runner.Host {
		window += fastest.Abs()
	}
	a := account{r: r, messages: messages, startedUS: runner.StartedUS, window: window}
	if s.shared != nil {
		a.window, a.tolerance = s.joiningTime(r), arrivalSpread
		window = a.window
	}
	a.ordered = !s.m.Service.AnyOrder && r.Last <= uint64(len(messages)) // a higher number means that the service changed it
	for i, open := range r.Spans {
		to := open.To
		if to == 0 { // the runner was killed, so the run is invalid
			to = r.LastAt
		}
		from := open.From + window
		if certain != nil {
			from = max(from, certain[i])
		}
		at := span{from: runner.At(from).UnixMicro(), to: runner.At(to - window).UnixMicro()}
		tooShort := i == len(r.Spans)-1 && to-open.From < window // the run ended before the missed messages could arrive
		if last := len(a.spans) - 1; !open.Resumed || last < 0 {
			a.spans = append(a.spans, at)
		} else if !tooShort {
			a.spans[last].to = at.to
		}
		a.spans[len(a.spans)-1].receive(&open)
		a.last = at.to
		if widened := window - joinWindow; to-open.From > 2*joinWindow && 4*widened > to-open.From {
			a.clocksDiffer = true
		}
	}
	a.delay = a.lastDelay(runner)
	if s.shared == nil && r.MaxLateness > 0 { // from the publish time in messages, perhaps by another clock
		a.delay = min(a.delay, r.MaxLateness)
	}
	a.delay = max(a.delay-(a.window-joinWindow), 0)
	if o := r.LastOutage; isDisconnected(r) && s.m.Service.Resumes() {
		a.disconnected = o.To-o.From > window
	}
	if n := r.Last; n > 0 && n <= uint64(len(messages)) && r.Corrupted == 0 { // otherwise r.Last may be the number of a corrupted message
		a.premature = runner.At(r.LastAt+window).UnixMicro() < messages[n-1].SentUS
	}
	if known := max(uint64(len(messages)), max(r.First, 1)-1); r.Last > known && r.First > 0 {
		a.unpublished = r.Last - known
		for _, hole := range r.Holes {
			if hole[1] > known {
				a.unpublished -= min(hole[1]-max(hole[0], known+1)+1, a.unpublished)
			}
		}
	}
	return a
}

// lastDelay returns how long the last message took to arrive, by the clocks of two hosts.
func (a *account) lastDelay(runner *shard.Runner) time.Duration {
	r := a.r
	if r.Last == 0 || r.Last > uint64(len(a.messages)) || len(r.Spans) == 0 || r.LastAt <= r.Spans[len(r.Spans)-1].From {
		return 0 // nothing arrived on the last stream: LastAt is its start
	}
	return runner.At(r.LastAt).Sub(time.UnixMicro(a.messages[r.Last-1].SentUS))
}

// mayBePending reports whether a message may still have been in transit at the end of the run: it was published less
// than 1.5 times the delay of the last message before the end. Messages at an interval have the same tolerance
// (docs/accounting.md).
func (a *account) mayBePending(number uint64) bool {
	return number > a.r.Last && a.messages[number-1].SentUS > a.last+(a.window-a.delay*3/2).Microseconds()
}

// lostNumbers returns the numbers of the expected messages that did not arrive.
func (a *account) lostNumbers() (out []ledger.Range) {
	published := uint64(len(a.messages))
	missing := []ledger.Range{{1, published}} // nothing arrived
	if a.r.First > 0 || a.r.Last > 0 {
		missing = append([]ledger.Range{{1, a.r.First - 1}}, a.r.Holes...)
		missing = append(missing, ledger.Range{a.r.Last + 1, published})
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i][0] < missing[j][0] })
	unplaced := a.unplacedTimes()
	for _, run := range missing {
		enclosed := a.ordered && slices.ContainsFunc(a.spans, func(s span) bool { return s.encloses(run) })
		for n := run[0]; n >= 1 && n <= min(run[1], published); n++ {
			if !a.expects(n, enclosed) {
				continue
			}
			if at := slices.IndexFunc(unplaced, func(arrival time.Time) bool { return a.couldBe(n, arrival) }); at >= 0 {
				unplaced = slices.Delete(unplaced, at, at+1)
				continue
			}
			out = appendNumber(out, n)
		}
	}
	return out
}

// unplacedTimes returns the arrival times of corrupted messages without a number. Each may be any message that is
// missing at that time.
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

// couldBe reports whether the corrupted message that arrived at a time may be the message with that number: it arrived
// after that message was published, with a delay of at most the window more than that of the last message.
func (a *account) couldBe(number uint64, arrival time.Time) bool {
	took := arrival.Sub(time.UnixMicro(a.messages[number-1].SentUS))
	return took >= joinWindow-a.window-a.tolerance && took <= a.delay+a.window
}

// expects reports whether a message that did not arrive was expected. enclosed reports whether messages before and
// after it arrived in one span.
func (a *account) expects(number uint64, enclosed bool) bool {
	m := &a.messages[number-1]
	if m.State != shard.Confirmed {
		return false
	}
	if enclosed {
		return true
	}
	for _, open := range a.spans {
		switch {
		case m.SentUS < open.from || m.SentUS > open.to:
		case a.mayBePending(number):
			a.pending++
			a.undecided++
			return false
		case m.AnsweredUS > open.to: // it was confirmed after the stream had ended
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

// concludePublished returns a copy of the record of the ith connection with the results of its account.
func (s *Streams) concludePublished(i int, a *account, lost []ledger.Range) *shard.Connection {
	r := s.mutableConnection(i, a.r)
	for _, run := range lost {
		count := run[1] - run[0] + 1
		r.Lost += count
		f := ledger.Finding{Kind: ledger.KindLost, From: run[0], To: run[1], Count: count, At: a.instant(run[0]), Source: ledger.SourcePublisher}
		if s.shared != nil {
			f.Source, f.Note = ledger.SourceSubscribers, s.recipients(a.r, run[0])
		}
		r = s.conclude(i, r, f)
	}
	if a.unpublished > 0 { // for example, the service changed a number
		unknown := min(a.unpublished, r.Received)
		r.Received -= unknown
		r.Corrupted += unknown
		r = s.conclude(i, r, ledger.Finding{Kind: ledger.KindCorrupted, From: r.Last, At: r.LastAt, Note: unpublishedNote})
	}
	r.Undetectable += a.undecided
	return r
}

// unpublishedNote is the note of findings about messages that arrived and were not published.
const unpublishedNote = "it was never published"

// notExpected states why confirmed messages that did not arrive were not expected.
var notExpected = fmt.Sprintf("they were published within %s of the start or the end of a stream, or while the client had no stream", format.Duration(joinWindow))

// Delivery returns the checks that no message was received before it was published, and that most messages could be
// checked.
func (s *Streams) Delivery() []Check {
	if s.shared != nil {
		return []Check{s.comparabilityCheck().Inconclusive(), s.coverageCheck().Inconclusive().notJudgedIf(s.coverage.lowestID == "", "no client was open while others received messages")}
	}
	if s.Messages.Published == nil {
		return nil
	}
	earlyCheck := Check{
		ID: CheckEarly, Name: "messages received before publishing", Limit: "0", Actual: first(s.premature, "none"), Pass: len(s.premature) == 0,
		Why: "messages of an earlier run can hide losses", Reasons: s.premature,
	}
	return []Check{
		earlyCheck.Inconclusive().notJudgedIf(!s.hasMessages(), s.reasonNoMessage()),
		s.coverageCheck().Inconclusive().notJudgedIf(s.coverage.lowestID == "", "no client was open while messages were confirmed"),
	}
}

// undecidedFrom returns the time from which it is unknown whether a missing message was expected, in microseconds since
// 1970.
func (a *account) undecidedFrom() int64 {
	switch {
	case a.clocksDiffer:
		return 0
	case a.r.UnlistedSpans > 0 || a.disconnected:
		return a.last + 1
	}
	return math.MaxInt64
}

// instant returns when a message was published, as an instant of the runner.
func (a *account) instant(number uint64) ledger.Instant {
	return time.Duration(a.messages[number-1].SentUS-a.startedUS) * time.Microsecond
}
