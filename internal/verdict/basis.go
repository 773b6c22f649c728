package verdict

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// The kinds of evidence.
const (
	ByPublisher   = "publisher"   // the run's publisher recorded which messages the service confirmed
	ByServer      = "server"      // the server's own ledger of sent messages, in addition to numbers or interval
	ByNumbers     = "numbers"     // the messages of every client are numbered; the server has no ledger
	BySubscribers = "subscribers" // the clients of a topic are compared with each other
	ByStatement   = "statement"   // the service states the number of chunks, or the text, that it sent
	ByNothing     = "nothing"     // messages are not checked
	ByClock       = "clock"       // on some streams messages have no numbers; one is expected per interval
)

// A Basis is the evidence that the counts of a run depend on, with the number of undetectable losses and their reasons
// (docs/accounting.md).
type Basis struct {
	Kind         string   `json:"by"`
	Undetectable uint64   `json:"undetectable"`
	Why          []string `json:"why"`
}

var basisTexts = map[string]string{
	ByPublisher:   "the publisher: messages that the service confirmed are expected",
	ByServer:      "the server's own ledger, together with the numbers or the interval of the messages",
	BySubscribers: "a comparison of the clients of each topic with each other",
	ByNothing:     "nothing: messages were not checked",
	ByNumbers:     "the numbers of the messages",
	ByStatement:   "the service's statement of the content that it sent",
	ByClock:       "the clock: messages are expected by interval",
}

// Text describes the evidence for the counts of messages.
func (e Basis) Text() string { return basisTexts[e.Kind] }

// undetectable returns the number of undetectable losses of a client. It is 0 if the server's ledger has the number
// of the last message sent. If the ledger has only a count, a duplicate may have replaced a lost message.
func (s *Streams) undetectable(r *shard.Connection) uint64 {
	if r.Undetectable+r.PossibleCopies == 0 { // the common case, before a lookup in a large map
		return 0
	}
	e, ok := s.server[r.ID]
	switch {
	case !ok || idInUse(r) || r.IsDisconnected():
		return r.Undetectable
	case r.Numbered:
		return 0
	case e.First <= 1 && e.Sent <= r.Received+r.Corrupted+r.Missed():
		return r.PossibleCopies
	}
	return r.Undetectable
}

// setBasis sets the kind of evidence to the weakest kind of any stream. It also sums up the undetectable losses and the
// last outages.
func (s *Streams) setBasis() {
	e := &s.Evidence
	if !s.m.Service.HasInterval() {
		s.setBasisOfNumbers()
		return
	}
	e.Kind, e.Why = ByNumbers, []string{}
	isCompared := s.server != nil && slices.ContainsFunc(s.m.Runners, func(r shard.Runner) bool { return r.IsComplete() })
	if isCompared {
		e.Kind = ByServer
	}
	var byClock, undetectableStreams int
	for _, c := range s.Records() {
		n := s.undetectable(c)
		s.lastOutages.count(c, n)
		if c.Received > 0 && !c.Numbered && (!isCompared || n > 0) {
			byClock++
		}
		e.Undetectable += n
		if n > 0 && c.LastOutage == nil {
			undetectableStreams++
		}
	}
	if byClock > 0 {
		e.Kind = ByClock
	}
	defer func() { e.Why = append(e.Why, s.lastOutages.reasons()...) }()
	if undetectableStreams == 0 {
		return
	}
	if byClock > 0 {
		e.Why = append(e.Why, fmt.Sprintf("%s had no ids 1, 2, 3 …: the loss of the first %s, of the last one, or of one whose successor arrived twice cannot be detected",
			format.Plural(byClock, "stream", "streams"), s.m.Service.Noun()))
	}
	if byClock < undetectableStreams {
		e.Why = append(e.Why, fmt.Sprintf("on %s a %s was due right before the end and may have been in transit",
			format.Plural(undetectableStreams-byClock, "numbered stream", "numbered streams"), s.m.Service.Noun()))
	}
}

func sourceName(kind string) string {
	switch kind {
	case ByServer:
		return "interval and the server's ledger"
	case ByNumbers:
		return "numbers of the messages"
	case BySubscribers:
		return "comparison of the clients"
	}
	return kind
}

// setBasisOfNumbers does the same as setBasis for messages that are not sent at a fixed interval.
func (s *Streams) setBasisOfNumbers() {
	e := &s.Evidence
	for _, c := range s.Records() {
		e.Undetectable += c.Undetectable
		s.lastOutages.count(c, c.Undetectable)
	}
	switch {
	case !s.m.Service.CountsMessages():
		e.Kind, e.Why = ByNothing, []string{"the service description has message: 'unchecked'"}
	case s.m.Service.ComparesClients():
		e.Kind, e.Why = BySubscribers, s.doubtsOfSubscribers()
	case s.Messages.Published != nil:
		e.Kind = ByPublisher
		e.Why = []string{fmt.Sprintf("a message published within %s of the start or the end of a stream is not expected on it", format.Duration(streamMargin))}
		if n := s.Messages.NotExpected; n > 0 {
			e.Why = append(e.Why, fmt.Sprintf("%s not arrive and %s not expected: %s", format.Plural(n, "message did", "messages did"), format.Form(n, "was", "were"), notExpectedReason))
		}
		switch {
		case s.lastOutages.undetectable > 0:
			e.Why = slices.Insert(e.Why, 0, s.lastOutages.reasons()...)
		case s.pendingClients > 0:
			e.Why = slices.Insert(e.Why, 0, fmt.Sprintf("the last messages of %s may still have been in transit at the end of the run: messages took up to %s to arrive",
				format.Plural(s.pendingClients, "client", "clients"), format.Duration(s.delay)))
		case e.Undetectable > 0:
			e.Why = slices.Insert(e.Why, 0, "some messages were confirmed at the end of a stream or after it, some clients had more streams than a ledger lists, or clocks of two machines differ by over a quarter of the time that a stream was open")
		}
		if s.m.Service.Unmarked {
			for _, c := range s.Records() {
				e.Undetectable += c.Received
			}
			e.Why = slices.Insert(e.Why, 0, "messages have no marker of run and topic (message.run), so a message of another run with the same number may hide a loss")
		}
	default:
		e.Kind = ByNumbers
		for _, c := range s.Records() {
			e.Undetectable += 2 * clamp.Uint64(c.Streams)
		}
		e.Why = []string{"losses before the first and after the last message of a stream are undetectable: at least one at each end could be missing"}
	}
}

// hasOpenEnds reports whether losses before the first and after the last message of a stream are undetectable.
func (s *Streams) hasOpenEnds() bool {
	return s.Evidence.Kind == ByClock || s.Evidence.Kind == ByNothing || s.Evidence.Kind == BySubscribers || s.Evidence.Kind == ByNumbers && !s.m.Service.HasInterval()
}

// UndetectableLossCheck returns the check of MAX_HIDDEN. The default is a limit of 0, or no limit if losses at the ends
// of streams are undetectable. A few clients that were reconnecting when the run ended do not make the run invalid.
func (s *Streams) UndetectableLossCheck() Check {
	e, maximum, noun := s.Evidence, s.m.Plan.MaxHidden, s.m.Service.Noun()
	limit, count, pass := fmt.Sprint(maximum), e.Undetectable, true
	if maximum < 0 {
		limit, pass = "0", s.lastOutages.isFew(s.m.Plan.Connections)
		if pass && s.lastOutages.undetectable > 0 {
			limit = "0, excluding clients that were reconnecting at the end"
			count -= s.lastOutages.undetectable
		}
		if s.hasOpenEnds() {
			limit, count = NoLimit, 0
		}
		pass = pass && s.lastOutages.undetectable <= s.Messages.Expected
		maximum = 0
	}
	actual, bound := fmt.Sprint(e.Undetectable), "up to"
	if e.Kind == ByNumbers && !s.m.Service.HasInterval() {
		actual, bound = "at least "+actual, "at least"
	}
	if e.Kind != ByNothing {
		actual += ", according to the " + sourceName(e.Kind)
	}
	reason := fmt.Sprintf("%s %s could be %s (MAX_HIDDEN allows %s)", bound, format.Count(e.Undetectable, noun),
		format.Form(e.Undetectable, "an undetectable loss", "undetectable losses"), limit)
	if len(e.Why) > 0 { // empty if, for example, only dropped clients have undetectable losses
		reason += ": " + firstText(e.Why, "")
	}
	c := Check{
		ID: CheckUndetectable, Name: "undetectable losses", Limit: limit, Actual: actual,
		Pass: pass && count <= uint64(maximum), Why: "undetected losses would make a pass wrong",
		Reasons: []string{reason},
	}.AsDoubt()
	if !pass {
		c.Reasons = s.lastOutages.doubts(s.m.Plan.Connections, s.Messages.Expected)
		return c
	}
	if e.Kind == ByNothing {
		return c.NotJudged("no message was checked")
	}
	return c.notJudgedIf(s.Messages.Expected == 0, "no "+noun+" was expected")
}
