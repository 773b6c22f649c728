package verdict

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Messages holds the counts of all messages.
type Messages struct {
	ledger.Totals
	// Floor is clients × floor(planned open time / interval), for comparison (docs/accounting.md); 0 if messages have no
	// interval.
	Floor      uint64 `json:"floor,omitempty"`
	Repeated   uint64 `json:"repeated,omitempty"`   // duplicates, if the description allows them
	Foreign    uint64 `json:"foreign,omitempty"`    // messages of other publishers, or of another run
	Misrouted  uint64 `json:"misrouted,omitempty"`  // messages of this run on streams of other topics
	Heartbeats uint64 `json:"heartbeats,omitempty"` // not counted as messages
	Unchecked  uint64 `json:"unchecked,omitempty"`  // events that match message.event and are not checked
	Uncounted  uint64 `json:"uncounted,omitempty"`  // blocks that are neither message nor heartbeat
	Announced  uint64 `json:"announced_gaps,omitempty"`
	// NotExpected counts messages that did not arrive and were not expected, because a stream was starting or ending, or
	// the client had no stream. They were confirmed, or other clients received them.
	NotExpected uint64 `json:"not_expected,omitempty"`
	// ClientsWithLoss counts the clients that missed messages.
	ClientsWithLoss int `json:"clients_with_loss,omitempty"`
	// Checked counts the confirmed messages whose loss would have been reported, as missed or as undetectable. A message
	// counts once for each client of its topic.
	Checked uint64 `json:"checked,omitempty"`

	Published *Publication `json:"published,omitempty"`
	// LastSubscriberMS is the time from when a message was sent until its last subscriber received it.
	LastSubscriberMS *Quantiles `json:"last_subscriber_ms,omitempty"`
	// Topics lists the first maxTopics topics of the publishers or feeds, in their order.
	Topics []*Topic `json:"topics,omitempty"`
}

// A Publication counts the messages of the run's publishers, and the responses of the service.
type Publication struct {
	Topics    int     `json:"topics"`
	Rate      float64 `json:"rate"` // messages per second, all topics together
	Planned   uint64  `json:"planned"`
	Sent      uint64  `json:"sent"`
	Confirmed uint64  `json:"confirmed"`
	Refused   uint64  `json:"refused"`
	Open      uint64  `json:"open"` // messages without a response
	// Late counts messages that were sent over a second behind the schedule; MaxLagMS is the maximum lag.
	Late       uint64    `json:"late"`
	MaxLagMS   float64   `json:"max_lag_ms"`
	ResponseMS Quantiles `json:"response_ms"`
	// MaxBodyMS is the longest time from the headers of a publish response to the end of its body.
	MaxBodyMS float64 `json:"max_body_ms,omitempty"`
	// ClosedIdle counts messages sent on a connection that the service was closing as idle at that moment.
	ClosedIdle uint64 `json:"closed_idle,omitempty"`
}

// A Topic counts the messages published to one topic, and the messages that its streams received.
type Topic struct {
	Name      string `json:"name"`
	Streams   int    `json:"streams"`
	Published uint64 `json:"published"`
	ledger.Totals

	// The following fields apply to topics whose clients are compared with each other. Messages counts the messages
	// that all clients were expected to receive. MinReceived and MaxReceived are the lowest and the highest number of
	// messages that one client received. Diverged lists the first clients that did not receive the same messages as
	// most clients, and DivergedUnix is the time of the first difference.
	Messages     uint64   `json:"messages,omitempty"`
	MinReceived  uint64   `json:"min_received,omitempty"`
	MaxReceived  uint64   `json:"max_received,omitempty"`
	Diverged     []string `json:"diverged,omitempty"`
	DivergedUnix float64  `json:"diverged_unix_s,omitempty"`

	counts           ledger.Counts // sum over the streams
	confirmedNumbers []uint64      // of messages that were confirmed or, in a feed, expected on all clients
}

const maxTopics = 50

// listTopics sets the topics of the publishers, in their order, including topics without a stream.
func (s *Streams) listTopics() {
	s.topics = map[string]*Topic{}
	for _, p := range s.m.Publishers() {
		for i, name := range p.Topics {
			if s.topics[name] != nil {
				continue
			}
			t := &Topic{Name: name, Published: clamp.Uint64(p.Sent(i)), confirmedNumbers: confirmedNumbers(p.Topic(i))}
			s.topics[name] = t
			if len(s.Messages.Topics) < maxTopics {
				s.Messages.Topics = append(s.Messages.Topics, t)
			}
		}
	}
}

func (t *Topic) add(r *shard.Connection) {
	t.Streams++
	t.counts.Add(r.Counts)
	t.Totals = t.counts.Totals()
}

func (s *Streams) sumMessages() {
	m, all := &s.Messages, &s.sum
	m.Totals = all.Totals()
	if s.m.Service.HasInterval() {
		m.Floor = clamp.Uint64(s.m.Plan.Connections) * clamp.Uint64(s.m.Plan.MinNoopsPerStream())
	}
	m.Misrouted, m.Unchecked = all.Misrouted, all.Unchecked
	m.Repeated, m.Foreign, m.Heartbeats, m.Uncounted, m.Announced = all.Repeated, all.Foreign, all.Heartbeats, all.Uncounted, all.AnnouncedGaps
	m.Published = publication(s.m.Publishers())
	if s.m.Reach != nil {
		if h := s.m.Reach.Histogram(); h.Count() > 0 {
			last := quantiles(h)
			m.LastSubscriberMS = &last
		}
	}
}

// publication adds up the records of all publishers; nil without a publisher.
func publication(publishers []*shard.Published) *Publication {
	if len(publishers) == 0 {
		return nil
	}
	var out Publication
	answers := shard.NewHistogram()
	for _, p := range publishers {
		sums := p.Sums()
		out.Topics += len(p.Topics)
		out.Rate += p.Rate
		out.Planned += p.Planned
		out.Sent += sums.Sent
		out.Confirmed += sums.Confirmed
		out.Refused += sums.Refused
		out.Open += sums.Open
		out.Late += sums.Late
		out.MaxLagMS = max(out.MaxLagMS, float64(sums.MaxLagUS)/1000)
		out.MaxBodyMS = max(out.MaxBodyMS, float64(p.MaxBodyUS)/1000)
		for _, f := range p.Unanswered() {
			if f.Idle {
				out.ClosedIdle += f.Count
			}
		}
		answers.Merge(p.Answer)
	}
	out.ResponseMS = quantiles(answers)
	return &out
}

// hasNoEvidence reports whether the streams received no message and, if messages are unchecked, no event or heartbeat.
func (s *Streams) hasNoEvidence() bool {
	m := &s.Messages
	return m.Received == 0 && (s.m.Service.CountsMessages() || m.Heartbeats+m.Unchecked+m.Uncounted+m.Foreign == 0)
}

// publishChecks returns the checks of the publisher: all messages were sent on time and confirmed.
func (s *Streams) publishChecks() (out []Check) {
	p := s.Messages.Published
	if p == nil {
		return nil
	}
	confirmed := Check{
		ID: CheckConfirmed, Name: "messages published and confirmed", Limit: fmt.Sprint(p.Planned), Actual: fmt.Sprint(p.Confirmed), Pass: p.Confirmed == p.Planned,
		Why: "clients cannot receive a message that the service refused",
	}
	for _, publisher := range s.m.Publishers() {
		for _, f := range append(publisher.Refusals(), publisher.Unanswered()...) {
			confirmed.Reasons = append(confirmed.Reasons, failureText(publisher, f))
		}
	}
	stalled, stall, signal := s.unsentByGenerator()
	if unsent := p.Planned - min(p.Sent, p.Planned); unsent > 0 {
		reason := fmt.Sprintf("%d of %s %s not sent before the end", unsent, format.Plural(p.Planned, "message", "messages"), format.Form(unsent, "was", "were"))
		if stalled == unsent {
			reason += fmt.Sprintf(", because the load generator stalled for up to %s", format.Duration(stall))
		}
		confirmed.Reasons = append(confirmed.Reasons, reason)
	}
	onTimeCheck := Check{
		ID: CheckOnTime, Name: "messages published on time", Limit: fmt.Sprintf("%g %% within 1 s of the schedule, none over %s behind", 100-100*maxLagShare, format.Duration(maxLag)),
		Actual: fmt.Sprintf("%d over 1 s behind; maximum lag %s", p.Late, format.Milliseconds(p.MaxLagMS)), Pass: s.publishedOnTime(),
		Why:     "the load differs from the plan",
		Reasons: []string{p.lagText()},
	}
	// The service may close an idle connection at any time. Whether the service received a message sent at that moment
	// is unknown.
	if !confirmed.Pass && p.Confirmed+p.ClosedIdle+s.unpublishedLocally()+stalled == p.Planned {
		confirmed.ExplainedBy = signal
		confirmed = confirmed.AsDoubt()
	}
	return []Check{confirmed, onTimeCheck.AsDoubt().notJudgedIf(p.Sent == 0, "no message was sent")}
}

// unpublishedLocally returns the number of messages that were not sent because the publisher had no port, descriptor or
// IPv6 address for a connection. portsCheck reports them.
func (s *Streams) unpublishedLocally() (n uint64) {
	for _, p := range s.m.Publishers() {
		for _, f := range p.Refusals() {
			if f.Local {
				n += f.Count
			}
		}
	}
	return n
}

// unsentByGenerator returns the number of messages that were not sent before the end because the load generator
// stalled. It also returns the longest such stall, and the signal that shows it. A stall after the last sent message was
// due must explain the unsent messages. A stall at any time must explain the lag of the sent ones. Both have a tolerance
// of LATE_MS. Otherwise the service was slow to answer.
func (s *Streams) unsentByGenerator() (n uint64, stall time.Duration, explainedBy Signal) {
	limit := s.m.Plan.LateLimit()
	for i := range s.m.Runners {
		r := &s.m.Runners[i]
		if s.m.PublisherOf(i) != r {
			continue
		}
		p := s.m.PublishedTo(i)
		unsent := p.Planned - min(p.Messages, p.Planned)
		if unsent == 0 {
			continue
		}
		end := time.Duration(r.EndedUS-r.StartedUS) * time.Microsecond
		lastDue := time.Duration(p.Due(max(p.Messages, 1)-1)-r.StartedUS) * time.Microsecond
		delay, _ := s.delayOf(i, 0, end)
		delayAtEnd, signal := s.delayOf(i, lastDue, end)
		explainsLag := (delay + limit).Microseconds() >= p.Sums().MaxLagUS
		explainsUnsent := delayAtEnd > limit/2 && (delayAtEnd+limit).Seconds() >= float64(unsent)/p.Rate
		if explainsLag && explainsUnsent {
			n, stall, explainedBy = n+unsent, max(stall, delayAtEnd), signal
		}
	}
	return n, stall, explainedBy
}

// The limits for the lag of a publisher. After a short stall, the publisher sends the delayed messages, and all of
// these are checked.
const (
	maxLagShare = .01              // the maximum share of messages that were sent over a second behind the schedule
	maxLag      = 10 * time.Second // the maximum lag of a message
)

func (s *Streams) publishedOnTime() bool {
	p := s.Messages.Published
	return float64(p.Late) <= maxLagShare*float64(p.Sent) && p.MaxLagMS <= format.InMilliseconds(maxLag)
}

func (p *Publication) lagText() string {
	reason := fmt.Sprintf("the publisher did not keep up, or the service was slow to answer it (p99 %s, max %s)",
		format.Milliseconds(p.ResponseMS.P99), format.Milliseconds(p.ResponseMS.Max))
	if p.MaxBodyMS > p.ResponseMS.Max {
		reason = fmt.Sprintf("the publisher waits for the end of each response body, which arrived up to %s after the headers (p99 of the headers: %.0f ms)",
			format.Milliseconds(p.MaxBodyMS), p.ResponseMS.P99)
	}
	return fmt.Sprintf("%s sent over 1 s behind the schedule, up to %s: %s",
		format.Plural(p.Late, "message was", "messages were"), format.Milliseconds(p.MaxLagMS), reason)
}

func failureText(p *shard.Published, f shard.PublishFailure) string {
	outcome := "not answered"
	switch {
	case f.State == shard.Refused && f.Status == 0:
		outcome = "not sent, because no connection could be made"
	case f.State == shard.Refused:
		outcome = "refused"
	}
	text := fmt.Sprintf("%s %s; %s was number %d of topic %s",
		format.Plural(f.Count, "message was", "messages were"), outcome, format.Form(f.Count, "it", "the first"), f.Number, p.Topics[f.Topic])
	if f.Text != "" {
		text += ": " + f.Text
	}
	return text
}

// silenceChecks returns the check of the longest silence of a stream; nil if the description has no heartbeat interval.
func (s *Streams) silenceChecks() []Check {
	if s.m.Service.Heartbeat() == 0 {
		return nil
	}
	interval := s.m.Service.Heartbeat()
	limit := interval + max(s.m.Plan.LateLimit(), interval/10)
	var longest time.Duration
	silent := s.overruns(func(c *shard.Connection) (out excess) {
		longest = max(longest, c.MaxSilence)
		if c.MaxSilence <= limit {
			return out
		}
		from := s.m.Runners[c.Runner].At(c.SilentFrom)
		return excess{c.MaxSilence - limit, c.SilentFrom, c.SilentFrom + c.MaxSilence, fmt.Sprintf("%s was silent for %s from %s; a heartbeat is due every %s (heartbeat.every)",
			c.ID, format.Duration(c.MaxSilence), format.TimeOfDay(from), format.Duration(interval)), false}
	})
	return []Check{silent.check(Check{
		ID: CheckSilence, Name: "longest silence of a stream", Limit: format.Duration(limit), Actual: format.Duration(longest), Why: "proxies and clients close silent streams",
	}).notJudgedIf(s.Connections.Opened == 0, reasonNoStream)}
}

func (s *Streams) zeroCheck(id CheckID, kind ledger.Kind, name string, n uint64, why string) Check {
	return Check{ID: id, Name: name, Limit: "0", Actual: fmt.Sprint(n), Pass: n == 0, Why: why, Reasons: s.Sentences(kind)}
}

// endingChecks returns the checks of lifetimes if the service ends streams. It adds the checks of misrouted messages,
// announced gaps and missing ids if there were any.
func (s *Streams) endingChecks() (out []Check) {
	if s.m.Service.EndsStreams() {
		hasNoStream := s.Connections.Opened == 0
		if s.m.Plan.TokenTTL == 0 { // otherwise a stream may end early because its token expires
			lifetimeCheck := s.zeroCheck(CheckLifetime, ledger.KindEndedEarly, "streams closed before the end of their lifetime", s.sum.EndedEarly, "clients have to reconnect early")
			out = append(out, lifetimeCheck.notJudgedIf(hasNoStream, reasonNoStream))
		}
		overdueCheck := s.zeroCheck(CheckOverdue, ledger.KindOverdue, "streams open for longer than their lifetime", s.sum.Overdue,
			"changes at the end of a stream, such as a new token, do not take effect")
		overdueCheck.faults = faults{overdueStream, s.sum.Overdue}
		out = append(out, s.attribute(overdueCheck).notJudgedIf(hasNoStream, reasonNoStream))
	}
	if n := s.Messages.Misrouted; n > 0 {
		out = append(out, s.zeroCheck(CheckMisrouted, ledger.KindMisrouted, "messages on streams of other topics", n, "clients receive messages that they did not subscribe to"))
	}
	if n := s.Messages.Announced; n > 0 {
		c := s.zeroCheck(CheckAnnounced, ledger.KindAnnounced, "gaps announced by the service", n, "clients miss messages")
		if s.m.Plan.AllowGaps {
			announced := s.allCuts().Announced
			c.Limit, c.Pass = fmt.Sprint(announced), n <= announced
		}
		out = append(out, c)
	}
	return append(out, s.idChecks()...)
}

// idChecks returns the checks of clients that could not resume because the service had reset their id or sent none.
func (s *Streams) idChecks() (out []Check) {
	const why = "a client without an id loses all messages of an outage"
	if n := s.Total(ledger.KindIDReset); n > 0 {
		out = append(out, s.zeroCheck(CheckIDReset, ledger.KindIDReset, "reconnects after an id reset", n, why))
	}
	if n := s.Total(ledger.KindNoID); n > 0 {
		const remedy = "write resume: { by: 'none' } in the description if the service does not resume streams"
		c := s.zeroCheck(CheckNoID, ledger.KindNoID, "reconnects without an id", n, why)
		c.Reasons = append(c.Reasons, remedy)
		out = append(out, c.AsDoubt())
	}
	return out
}
