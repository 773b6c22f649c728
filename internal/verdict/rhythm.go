package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Rhythm says what comes how often on a stream of a plan whose messages are counted by that.
func Rhythm(p *plan.Plan, by shard.Counts) string {
	switch {
	case !p.Described():
		return fmt.Sprintf("a noop every %v s", p.NoopInterval)
	case p.Published():
		return fmt.Sprintf("a message every %.4g s on each stream, published at %v/s to %s", p.NoopInterval, p.PublishRate, format.Count(p.Topics, "topic"))
	case by == shard.CountsNothing:
		return "no message counted"
	case by == shard.CountsNumbers:
		return "messages whenever somebody publishes them"
	}
	return fmt.Sprintf("a message every %v s", p.NoopInterval)
}
