package verdict

import (
	"fmt"
	"math"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// compressionChecks returns an advisory check for each content coding. It is unmet if at least half of the messages
// arrived in bursts, or if none arrived. A few bursts are not enough, because a stall of the load generator causes one.
func (s *Streams) compressionChecks() (out []Check) {
	for _, c := range s.Codings {
		delay := s.delayedByCompression(&c)
		check := Check{
			ID: CheckCompressed, Name: fmt.Sprintf("%ss in %s delivered one by one", s.m.Service.Noun(), c.Name), Limit: "most", Actual: "most",
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
	case !s.m.Service.ByInterval() && !s.m.Plan.Published():
	case c.Messages == 0 && s.Messages.Expected > 0:
		return fmt.Sprintf("no %s arrived on the streams in %s: the service or a proxy buffers compressed data; %s", noun, c.Name, remedy)
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

// delayedHeaders describes streams that requested compression and received no response headers.
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
