package verdict

import (
	"fmt"
	"math"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// compressionChecks returns an advisory check for each content coding. It is unmet if at least half of the messages
// arrived in bursts, or if none arrived. A few bursts are not enough, because a stall of the load generator can cause
// them.
func (s *Streams) compressionChecks() (out []Check) {
	for _, c := range s.Codings {
		delay := s.delayedByCompression(&c)
		check := Check{
			ID: CheckCompressed, Name: fmt.Sprintf("one-by-one delivery of %ss compressed with %s", s.m.Service.Noun(), c.Name), Limit: "most", Actual: "most",
			Pass: delay == "", Severity: SeverityWarning, Why: "buffered compression delays messages",
		}
		if delay != "" {
			check.Actual, check.Reasons = burstText(&c), []string{delay}
		}
		out = append(out, check)
	}
	return out
}

func burstText(c *shard.Coding) string {
	if c.Bursts == 0 {
		return "no messages"
	}
	return fmt.Sprintf("in bursts of %.0f", math.Round(float64(c.BurstMessages)/float64(c.Bursts)))
}

// delayedByCompression describes messages that compression delayed; "" if none, or if it is unknown when they were due.
func (s *Streams) delayedByCompression(c *shard.Coding) string {
	const remedy = "flush after each message (nginx: proxy_buffering off), or do not compress event streams"
	noun := s.m.Service.Noun()
	switch {
	case !s.m.Service.HasInterval() && !s.m.Plan.Published():
	case c.Messages == 0 && s.Messages.Expected > 0:
		return fmt.Sprintf("no %s arrived on the streams compressed with %s: the service or a proxy buffers compressed data; %s", noun, c.Name, remedy)
	case c.Bursts > 0 && 2*c.BurstMessages >= c.Messages:
		return fmt.Sprintf("%ss arrive %s: the service or a proxy buffers compressed data (%s); %s", noun, burstText(c), c.Name, remedy)
	}
	return ""
}

func (s *Streams) addCompressionReason(reasons []string) []string {
	for _, c := range s.Codings {
		if delay := s.delayedByCompression(&c); delay != "" {
			return append([]string{delay}, reasons...)
		}
	}
	return reasons
}

// delayedHeaders describes streams that requested compression and received no response headers. It returns nil if any
// attempt was refused for another reason.
func (s *Streams) delayedHeaders() []string {
	accepted := s.m.Plan.AcceptEncoding
	if accepted == "" || s.Connections.Refused == 0 {
		return nil
	}
	for reason := range s.RefusedAttempts {
		if reason != causeTimeout && reason != ledger.ReasonNoAnswer {
			return nil
		}
	}
	return []string{fmt.Sprintf("streams that requested compression (ACCEPT_ENCODING=%s) received no response: a proxy may also buffer the headers; try ACCEPT_ENCODING=none", accepted)}
}

// MinBufferedShare is a limit: if a larger share of the messages arrived together, a proxy may have buffered them.
const MinBufferedShare = .5

// Bursts describes how many messages arrived together with the previous one; "" if none did.
func Bursts(b *shard.Bursts, noun string) string {
	if b == nil || b.Followers == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of the %ss arrived together with the previous one", format.Percent(100*b.Share()), noun)
	if b.Silence.Count() > 0 {
		text += fmt.Sprintf(", after a silence with a median of %s and a maximum of %s", format.Duration(b.Silence.Quantile(.5)), format.Duration(b.Silence.Max()))
	}
	return text
}

// Buffer states that something buffers the messages. It names the server if the responses have a Server header.
func Buffer(b *shard.Bursts) string {
	text := "something between the service and the client buffers them, such as nginx with proxy_buffering on"
	if server := b.Server(); server != "" {
		text += fmt.Sprintf(" (header Server: %q)", server)
	}
	return text
}

// minDueGap is the minimum interval at which messages are expected to arrive one by one.
const minDueGap = 20 * time.Millisecond

// isBuffered reports whether most messages arrived together although they were due one by one. It returns false if any
// stream is compressed, because compressionChecks judges such streams.
func (s *Streams) isBuffered() bool {
	b, interval := s.m.Bursts, time.Duration(0)
	switch p := &s.m.Plan; {
	case s.m.Service.HasInterval():
		interval = p.Interval()
	case p.Published():
		interval = time.Duration(p.PublishInterval() * float64(time.Second))
	}
	return b != nil && interval >= minDueGap && b.Share() > MinBufferedShare && len(s.Codings) == 0
}
