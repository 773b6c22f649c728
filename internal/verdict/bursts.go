package verdict

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// MinBufferedShare is the share of messages that arrived together above which a proxy may have buffered them.
const MinBufferedShare = .5

// Bursts describes how many messages arrived together with the previous one; "" if none did.
func Bursts(b *shard.Bursts, noun string) string {
	if b == nil || b.Followers == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of the %ss arrived together with the previous one", format.Percent(100*b.Share()), noun)
	if b.Silence.Count() > 0 {
		text += fmt.Sprintf(", after a silence of %s at p50 and %s at most", format.Duration(b.Silence.Quantile(.5)), format.Duration(b.Silence.Max()))
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

// bufferWarning warns if most messages arrived together although they were due one by one. compressionChecks judges
// compression.
func (s *Streams) bufferWarning() string {
	b, interval := s.m.Bursts, time.Duration(0)
	switch p := &s.m.Plan; {
	case s.m.Service.ByInterval():
		interval = p.Interval()
	case p.Published() && p.PublishRate > 0:
		interval = time.Duration(float64(time.Second) * float64(max(p.Topics, 1)) / p.PublishRate)
	}
	if b == nil || interval < minDueGap || b.Share() <= MinBufferedShare || len(s.Codings) > 0 {
		return ""
	}
	return Bursts(b, s.m.Service.Noun()) + ": " + Buffer(b)
}
