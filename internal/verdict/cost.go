package verdict

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/price"
)

// Cost is what a run took from its first runner's start to its last one's end, and what that costs. Setting hosts up and
// taking them down is not in it.
type Cost struct {
	price.Rate
	InstanceHours float64  `json:"instance_hours"`
	BytesRead     uint64   `json:"bytes_read"` // by the runners, of all connections
	Messages      uint64   `json:"messages"`   // that came on streams
	USD           float64  `json:"usd"`
	PerMillion    *float64 `json:"usd_per_million_messages,omitempty"` // nil: no message came
}

// dataReceived is k6's metric of what came over the network.
const dataReceived = "data_received"

// cost is nil where nobody said what the machines cost.
func cost(e *Evidence, v *Verdict) *Cost {
	if e.Rate == nil {
		return nil
	}
	took := time.Duration((v.EndedUnix - v.StartedUnix) * float64(time.Second))
	c := &Cost{Rate: *e.Rate, Messages: v.Messages.Received, USD: e.Rate.For(took)}
	c.InstanceHours = float64(price.Machines{Hosts: c.Hosts}.Count()) * took.Hours()
	for _, round := range e.Rounds {
		for _, m := range round.Metrics {
			if m.Name == dataReceived {
				c.BytesRead += uint64(m.Sum)
			}
		}
	}
	if c.Messages > 0 {
		million := c.USD / (float64(c.Messages) / 1e6)
		c.PerMillion = &million
	}
	return c
}
