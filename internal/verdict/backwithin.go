package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// minBackShare is the share of the streams that have to be back within BACK_WITHIN.
const minBackShare = .999

// reconnectCheck limits the outages after a lost stream: all but one in a thousand, each by its own ledger and from
// the moment of the loss. MAX_OUTAGE limits every single one, and the first connect.
func (s *Streams) reconnectCheck() Check {
	var outages []time.Duration
	for c := range s.Records() {
		from, to := s.longestOutage(c)
		outages = append(outages, to-from)
	}
	slices.Sort(outages)
	c := Check{
		ID: CheckBack, Name: fmt.Sprintf("%g %% of clients reconnected", 100*minBackShare), Limit: "any time", Actual: "none was lost", Pass: true,
		Why: "clients stay disconnected after a deploy",
	}
	if s.Connections.Opened == 0 {
		return c.NotJudged(noneOpened)
	}
	if n := len(outages); n > 0 && outages[n-1] > 0 {
		c.Actual = fmt.Sprintf("within %s; all within %s", format.Duration(outages[int(math.Ceil(minBackShare*float64(n)))-1]), format.Duration(outages[n-1]))
	}
	limit, ok := s.m.Plan.BackWithin()
	if !ok {
		return c
	}
	c.Limit = "within " + format.Duration(limit)
	slow := s.overruns(s.longestOutage, func(c *shard.Connection) (excess time.Duration, sentence string) {
		from, to := s.longestOutage(c)
		took := to - from
		if took <= limit {
			return 0, ""
		}
		return took - limit, fmt.Sprintf("%s was disconnected for %s; %g %% of the clients must reconnect within %s (BACK_WITHIN)", c.ID, format.Duration(took), 100*minBackShare, format.Duration(limit))
	})
	c = slow.check(c)
	c.Pass = float64(len(slow.sentences)) <= (1-minBackShare)*float64(s.Connections.Planned)+1e-9
	return c
}

// longestOutage returns the longest time without a stream after a lost one; 0 if no stream was lost.
func (s *Streams) longestOutage(c *shard.Connection) (from, to ledger.Instant) {
	longest := ledger.Outage{}
	note := func(o ledger.Outage) {
		if o.To-o.From > longest.To-longest.From {
			longest = o
		}
	}
	for _, o := range c.Outages { // which may lack the longest of many
		note(o)
	}
	if c.Streams > 0 && c.Longest.From >= c.OpenedAt { // else it is the first connect
		note(c.Longest)
	}
	if finding := s.lastOutage(c); finding != nil {
		note(*finding)
	}
	if c.MaxOutage > longest.To-longest.From { // it is not listed, and the first connect was slower
		return 0, c.MaxOutage
	}
	return longest.From, longest.To
}
