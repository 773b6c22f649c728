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

// minReconnectedShare is the minimum share of clients that must reconnect within BACK_WITHIN.
const minReconnectedShare = .999

// reconnectCheck returns the check of BACK_WITHIN, for all clients but one in a thousand. An outage starts with the
// loss of a stream. The first connect, whose time MAX_OUTAGE also limits, is not an outage here.
func (s *Streams) reconnectCheck() Check {
	var outages []time.Duration
	lost, disconnected := 0, 0 // clients that lost a stream; clients that had none at the end
	for _, c := range s.Records() {
		from, to := s.longestOutage(c)
		outages = append(outages, to-from)
		if to > from {
			lost++
		}
		if c.IsDisconnected() {
			disconnected++
		}
	}
	slices.Sort(outages)
	c := Check{
		ID: CheckReconnected, Name: fmt.Sprintf("%g %% of clients reconnected", 100*minReconnectedShare), Limit: "any time", Actual: "no stream was lost", Pass: true,
		Why: "clients stay disconnected after a deploy",
	}
	if s.Connections.Opened == 0 {
		return c.NotJudged(reasonNoStream)
	}
	switch n := len(outages); {
	case lost == 0:
	case disconnected > 0:
		c.Actual = fmt.Sprintf("%s of %s that lost a stream; no outage was longer than %s",
			format.Thousands(lost-disconnected), format.Count(lost, "client"), format.Duration(outages[n-1]))
	default:
		c.Actual = fmt.Sprintf("within %s; all within %s", format.Duration(outages[int(math.Ceil(minReconnectedShare*float64(n)))-1]), format.Duration(outages[n-1]))
	}
	limit, ok := s.m.Plan.BackWithin()
	if !ok {
		return c
	}
	c.Limit = "within " + format.Duration(limit)
	slow := s.overruns(func(c *shard.Connection) (out excess) {
		from, to := s.longestOutage(c)
		length := to - from
		if length <= limit {
			return out
		}
		isLocal := slices.ContainsFunc(append(slices.Clone(c.Outages), c.Longest), func(o ledger.Outage) bool { return o.From == from && ledger.AreLocal(o.Refusals) })
		return excess{length - limit, from, to, fmt.Sprintf("%s was disconnected for %s; %g %% of the clients must reconnect within %s (BACK_WITHIN)", c.ID, format.Duration(length), 100*minReconnectedShare, format.Duration(limit)), isLocal}
	})
	slow.allowed = int((1-minReconnectedShare)*float64(s.Connections.Planned) + 1e-9)
	return slow.check(c)
}

// longestOutage returns the start and the end of the longest outage that followed a lost stream; both are 0 if no
// stream was lost. If the record does not list that outage, only its length is known, and from is 0.
func (s *Streams) longestOutage(c *shard.Connection) (from, to ledger.Instant) {
	longest := ledger.Outage{}
	update := func(o ledger.Outage) {
		if o.To-o.From > longest.To-longest.From {
			longest = o
		}
	}
	for _, o := range c.Outages { // a list of limited length, which may lack the longest outage
		update(o)
	}
	if c.Streams > 0 && c.Longest.From >= c.OpenedAt { // otherwise the longest one is the first connect
		update(c.Longest)
	}
	for _, last := range []*ledger.Outage{s.lastOutage(c), c.LastOutage} {
		if last != nil {
			update(*last)
		}
	}
	if c.MaxOutage > longest.To-longest.From { // the longest outage is not listed, and the first connect took longer
		return 0, c.MaxOutage
	}
	return longest.From, longest.To
}
