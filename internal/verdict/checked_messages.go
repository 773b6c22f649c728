package verdict

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
)

// ConnectionsOnly reports whether the run passed without checking any message (message: 'unchecked'). It is false for a
// run of responses that end by themselves, because these are checked up to their terminal event.
func (v *Verdict) ConnectionsOnly() bool {
	return v.Verdict == Pass && v.Evidence.Kind == ByNothing && v.Responses == nil
}

// Word returns the outcome for display: pass, fail, invalid, or pass (connections only).
func (v *Verdict) Word() string {
	if v.ConnectionsOnly() {
		return string(Pass) + " (connections only)"
	}
	return string(v.Verdict)
}

// Heading returns Word with the outcome in capital letters: PASS (connections only).
func (v *Verdict) Heading() string {
	return strings.ToUpper(string(v.Verdict)) + strings.TrimPrefix(v.Word(), string(v.Verdict))
}

const reasonUnchecked = "messages were not checked"

// NextStep returns a sentence with the next step after a pass of connections only; "" for any other verdict.
func (v *Verdict) NextStep() string {
	if !v.ConnectionsOnly() {
		return ""
	}
	return "To check messages, run `soak init` with --publish-url (docs/services.md)"
}

// checkedMessageCheck returns the check that at least one message was checked. If the description has message:
// 'unchecked', the check is not judged, unless REQUIRE_MESSAGES is set or the streams received nothing.
func (s *Streams) checkedMessageCheck() Check {
	noun, required := s.m.Service.Noun(), s.m.Plan.RequireMessages
	n := s.checkedCount()
	c := Check{
		ID: CheckChecked, Name: noun + "s checked", Limit: "at least 1", Actual: fmt.Sprintf("%s, by the %s", format.Thousands(n), sourceName(s.Evidence.Kind)), Pass: n > 0,
		Why: "if no message is checked, losses are not detected",
	}
	switch {
	case s.m.Service.CountsMessages() && n == 0:
		c.Actual, c.Reasons = "none", []string{s.uncheckedReason()}
	case s.m.Service.CountsMessages():
	case s.hasNoEvidence():
		c.Actual, c.Reasons = "none", []string{"no stream received an event or a heartbeat, so no stream was tested"}
	case required:
		c.Actual, c.Reasons = "none", []string{reasonUnchecked + " although REQUIRE_MESSAGES is set: the service description has message: 'unchecked'; set message.seq, message.every, message.same or publish in it"}
	default:
		c.Limit = NoLimit
		return c.NotJudged("the service description has message: 'unchecked'")
	}
	return c.AsDoubt()
}

// checkedCount returns the number of messages whose loss would have been reported. If only the numbers of the messages
// are known, the loss of the first message of a client is not detectable.
func (s *Streams) checkedCount() uint64 {
	if !s.m.Service.CountsMessages() || s.Messages.Received == 0 {
		return 0
	}
	switch {
	case s.Messages.Published != nil || s.m.Service.ComparesClients():
		return s.Messages.Checked
	case s.m.Service.HasInterval():
		return s.Messages.Expected
	}
	n := s.Messages.Expected
	for _, c := range s.Records() {
		n -= min(c.Expected(), 1)
	}
	return n
}

// lacksNumbers reports whether messages arrived and none had a number at message.seq, so the description is wrong.
func (s *Streams) lacksNumbers() bool {
	n := &s.Messages
	return !s.m.Service.HasInterval() && s.Messages.Published == nil && n.Received == 0 && n.Corrupted > 0 && s.sum.Unnumbered == n.Corrupted
}

// uncheckedReason states why no message could be checked. If the description may be wrong, the text names the field to
// correct.
func (s *Streams) uncheckedReason() string {
	m := &s.Messages
	n := &m.Totals
	noun, uncheckedCount := s.m.Service.Noun(), m.Unchecked+m.Uncounted+m.Foreign
	if s.m.Service.HasInterval() && n.Received+n.Corrupted+uncheckedCount == 0 {
		return s.reasonNoMessage() + ", so no message was checked"
	}
	field, why := "message.seq", s.reasonNoMessage()
	switch {
	case s.m.Service.ComparesClients():
		field = "message.same"
	case m.Published != nil:
		field = "publish"
	case s.m.Service.HasInterval():
		field = "message.every"
	}
	switch {
	case s.lacksNumbers():
		why = fmt.Sprintf("%s arrived without a number there", format.Count(n.Corrupted, noun))
	case n.Received > 0 && s.m.Service.ComparesClients():
		why = "no client received a message that others also received, apart from the first and the last second of its streams"
	case n.Received > 0 && m.Published != nil:
		why = fmt.Sprintf("each was published within %s of the start or the end of a stream", format.Duration(streamMargin))
	case n.Received > 0:
		why = "no client received two messages, so none could be found missing"
	case uncheckedCount > 0:
		why += fmt.Sprintf(", although %s arrived, which the description does not define as %s", format.Count(uncheckedCount, "other event"),
			format.Form(uncheckedCount, "a "+noun, noun+"s"))
	}
	return fmt.Sprintf("%s: no message could be checked, because %s; correct the description, hold streams for longer, or write message: 'unchecked'", field, why)
}
