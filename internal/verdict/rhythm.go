package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Rhythm states how often a message arrives on each stream.
func Rhythm(p *plan.Plan, s *shard.Service) string {
	switch {
	case p.Published():
		return fmt.Sprintf("a message every %.4g s on each stream, published at %v/s to %s", p.NoopInterval, p.PublishRate, format.Count(p.Topics, "topic"))
	case !s.Counted():
		return "no message counted"
	case !s.ByInterval():
		return "messages whenever somebody publishes them"
	}
	return fmt.Sprintf("a %s every %v s", s.Noun(), p.NoopInterval)
}
