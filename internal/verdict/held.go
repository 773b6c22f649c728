package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// leastOpen is the share of the planned time for which a connection has to have a stream. Below it most of
// the run was not observed, however well it went while the stream was open.
const leastOpen = .5

// Held is how long streams were open, in seconds: from their headers to the request for their end, each
// at most as long as planned.
type Held struct {
	Planned float64 `json:"planned"`
	Held    float64 `json:"held"`
	Share   float64 `json:"share"`
}

// Percent is the share for people. It is cut, not rounded: what is not whole does not show as 100.
func (h Held) Percent() string { return fmt.Sprintf("%g %%", math.Floor(h.Share*10000)/100) }

// An Outage is the longest time that a connection was without a stream, from its first dial on.
type Outage struct {
	ID      string  `json:"id"`
	Unix    float64 `json:"unix_s"`
	Seconds float64 `json:"seconds"`
}

// openFor is for how much of the planned time the connection had a stream.
func (j *judge) openFor(r *shard.Connection) time.Duration { return min(r.OpenFor(), j.m.Plan.Hold()) }

// held sums up how long streams were open, how long connections were without one, and why.
func (j *judge) held() {
	var open time.Duration
	h := shard.NewHistogram() // of those that are listed; count and maximum are of all
	var longest, longestBack time.Duration
	survived := 0
	var shared []string
	for i := range j.m.Connections {
		c := &j.m.Connections[i]
		open += j.openFor(c)
		for _, f := range c.Refusals {
			if j.v.RefusedAttempts == nil {
				j.v.RefusedAttempts = map[string]int{}
			}
			j.v.RefusedAttempts[f.Reason] += f.Count
		}
		for _, o := range c.Outages {
			h.Record(o.To - o.From)
		}
		survived += max(c.Survived, len(c.Outages))
		longestBack = max(longestBack, c.MaxOutage)
		if j.server != nil && c.Streams > 0 && wasTaken(c) {
			shared = append(shared, c.ID)
		}
		if o := c.Longest; o.To-o.From > longest {
			longest = o.To - o.From
			j.v.LongestOutage = &Outage{ID: c.ID, Unix: unix(j.m.Runners[c.Runner].At(o.From)), Seconds: longest.Seconds()}
		}
	}
	if len(shared) > 0 {
		j.v.Warnings = append(slices.Clip(j.v.Warnings), fmt.Sprintf(
			"the server's ledger counts another client's stream too for %s: what it says of them is not held against what arrived", first(shared, "")))
	}
	if survived > 0 {
		j.v.Reconnect = &Reconnects{Quantiles: quantiles(h), Count: survived}
		j.v.Reconnect.Max = max(j.v.Reconnect.Max, milliseconds(longestBack))
	}
	planned := j.m.Plan.Hold().Seconds() * float64(j.m.Plan.Connections)
	j.v.Held = &Held{Planned: planned, Held: open.Seconds()}
	if planned > 0 {
		j.v.Held.Share = j.v.Held.Held / planned
	}
}

// heldCriteria compare the time that streams were open with the plan. Connections that were refused,
// dropped or not ended are reported by other criteria.
func (j *judge) heldCriteria() {
	short := j.overruns(func(c *shard.Connection) (over time.Duration, sentence string) {
		planned := j.m.Plan.Hold()
		least := time.Duration(leastOpen * float64(planned))
		open := j.openFor(c)
		if c.State != ledger.Completed || open >= least || j.v.Noops.Received == 0 { // which proves nothing at all
			return 0, ""
		}
		return least - open, fmt.Sprintf("%s was open for %s of the %s that were planned%s", c.ID, round(open), planned, refusals(", and was refused ", c.Refusals))
	})
	j.add(Criterion{
		Name: "time that streams were open", Limit: fmt.Sprintf("each %g %%", 100*leastOpen), Actual: first(short.sentences, j.v.Held.Percent()+" of the plan"),
		Pass: len(short.sentences) == 0, Invalid: short.stalled, Why: "nothing is known of the time without a stream",
		weight: doubtful(short.stalled, proven),
	}, short.sentences...)
	limit, ok := j.m.Plan.MaxOutage()
	if !j.m.Plan.Reconnect {
		return
	}
	c := Criterion{
		Name: "longest outage of a stream", Limit: "any", Actual: "none", Pass: true,
		Why: "how long a client had to do without",
	}
	if o := j.v.LongestOutage; o != nil {
		c.Actual = fmt.Sprintf("%s (%s)", round(time.Duration(o.Seconds*float64(time.Second))), o.ID)
	}
	var long overrun
	if ok {
		long = j.overruns(func(c *shard.Connection) (over time.Duration, sentence string) {
			took := c.Longest.To - c.Longest.From
			if c.Streams == 0 || took <= limit {
				return 0, ""
			}
			return took - limit, j.outageSentence(c)
		})
		c.Limit, c.Pass, c.Invalid = limit.String(), len(long.sentences) == 0, long.stalled
		c.weight = doubtful(long.stalled, proven)
	}
	j.add(c, long.sentences...)
}

// interruptions is the part of a pass's sentence about streams that were not open all the time.
func (j *judge) interruptions() (text string) {
	if n := j.v.Connections.Reconnected; n > 0 {
		text = counted(n, "reconnect", "reconnects") + ", "
	}
	refused := 0
	for _, n := range j.v.RefusedAttempts {
		refused += n
	}
	if refused > 0 {
		text += counted(refused, "refused attempt", "refused attempts") + ", "
	}
	if text == "" {
		return ""
	}
	return text + "open for " + j.v.Held.Percent() + " of the planned time, "
}

// overrun are the connections that exceeded a limit, the worst first.
type overrun struct {
	sentences []string
	stalled   bool // stalls of the generator could explain every one
}

func (j *judge) overruns(of func(*shard.Connection) (over time.Duration, sentence string)) (out overrun) {
	type one struct {
		over     time.Duration
		sentence string
	}
	var all []one
	out.stalled = true
	for i := range j.m.Connections {
		c := &j.m.Connections[i]
		over, sentence := of(c)
		if sentence == "" {
			continue
		}
		all = append(all, one{over, sentence})
		stall := time.Duration(j.m.Runners[c.Runner].StallMaxUS) * time.Microsecond
		out.stalled = out.stalled && stall >= over
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(b.over, a.over) })
	for _, o := range all {
		out.sentences = append(out.sentences, o.sentence)
	}
	out.stalled = out.stalled && len(all) > 0
	return out
}

func (j *judge) outageSentence(c *shard.Connection) string {
	o, r := c.Longest, j.m.Runners[c.Runner]
	end, after := "it was back", "it was back"
	switch {
	case o.From >= c.ClosedAt:
		end, after = "the end", "the end came"
	case o.From < c.OpenedAt:
		end, after = "its first stream opened", "its first stream opened"
	}
	return fmt.Sprintf("%s had no stream for %s, from %s UTC until %s%s%s", c.ID, round(o.To-o.From),
		r.At(o.From).UTC().Format("15:04:05.000"), end, refusals("; meanwhile it was refused ", o.Refusals), lastRefused(o, after))
}

// lastRefused tells the service's outage from the client's wait for its next attempt.
func lastRefused(o ledger.Outage, after string) string {
	if len(o.Refusals) == 0 {
		return ""
	}
	last := o.From
	for _, r := range o.Refusals {
		last = max(last, r.Last)
	}
	return fmt.Sprintf("; last refused %s after it began, %s %s later", round(last-o.From), after, round(o.To-last))
}

// refusals puts failed attempts into words, after the text before; "" if there are none.
func refusals(before string, list []ledger.Refusal) string {
	var all []string
	for _, f := range list {
		all = append(all, fmt.Sprintf("%s (%s)", times(f.Count), f.Reason))
	}
	if len(all) == 0 {
		return ""
	}
	return before + strings.Join(all, ", ")
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func round(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
