package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// settleTime is the time without a lost stream after an action has ended and all streams are back: later losses are not
// attributed to it.
const settleTime = time.Minute

// An Effect is what happened to the streams from the start of an action until the next one began, or until the
// command had ended, all streams were back and none was lost for a minute. A stream belongs to the action after which
// it was lost, also if it returned after the next one began. Times are seconds since the action began.
type Effect struct {
	Until     float64 `json:"until_unix_s"`
	Lost      int     `json:"streams_lost"`
	Times     int     `json:"times_lost"` // one stream may be lost again
	NeverBack int     `json:"never_back"`
	// FirstLost is the time of the first lost stream, Back50 the time when half of the lost streams were back for
	// good, and so on; nil: fewer returned, or none was lost.
	FirstLost *float64 `json:"first_lost_s,omitempty"`
	Back50    *float64 `json:"back_50_s,omitempty"`
	Back99    *float64 `json:"back_99_s,omitempty"`
	Back100   *float64 `json:"back_100_s,omitempty"`
	// Peak is the maximum number of streams that reconnected within a second.
	Peak    int            `json:"connects_per_second_peak"`
	Refused map[string]int `json:"refused_attempts,omitempty"` // of the streams that were lost, by reason
	Missed  uint64         `json:"missed"`
	// Resumed is the number of messages of the outage that arrived afterwards; nil if the service does not number them.
	Resumed *uint64 `json:"resumed,omitempty"`
	// NotResumed counts messages that were published around an outage, did not arrive, and were not expected: the client
	// could not resume.
	NotResumed uint64  `json:"not_resumed,omitempty"`
	Doubled    uint64  `json:"duplicated"`
	Slowest    *Outage `json:"slowest,omitempty"` // the client that was without a stream for longest
	// Notes state what the counts omit.
	Notes []string `json:"notes,omitempty"`
}

// Refusals returns how many attempts to connect failed.
func (e *Effect) Refusals() (n int) {
	for _, count := range e.Refused {
		n += count
	}
	return n
}

// A loss is a time in which a connection had no stream, after it had one. Times are Unix seconds.
type loss struct {
	*ledger.Outage                   // nil: only its time is known
	c              *shard.Connection // a copy
	from, to       float64
	back           bool
}

// losses returns the losses of all connections, ordered by their start. served has the times at which streams ended that
// the service may end by itself. unlisted is the number of further losses, whose times are unknown.
func (s *Streams) losses() (all []loss, served []float64, unlisted int) {
	for c := range s.Records() {
		r := &s.m.Runners[c.Runner]
		var connection *shard.Connection
		add := func(o *ledger.Outage, from, to ledger.Instant, back bool) {
			if connection == nil {
				copied := *c
				connection = &copied
			}
			all = append(all, loss{o, connection, unix(r.At(from)), unix(r.At(to)), back})
		}
		cuts := 0
		planned := func(at ledger.Instant, byClient bool) { // an end that the action did not cause
			if byClient {
				cuts++
			} else {
				served = append(served, unix(r.At(at)))
			}
		}
		for i := range c.Outages {
			if o := &c.Outages[i]; o.Planned {
				planned(o.From, o.Cut)
			} else {
				add(o, o.From, o.To, true)
			}
		}
		known := len(c.Outages)
		for ; !s.m.Service.EndsStreams() && known+1 < len(c.Spans); known++ { // the time between two streams, beyond those that are listed
			if o := c.Spans[known]; o.Planned {
				planned(o.To, o.Cut)
			} else {
				add(nil, o.To, c.Spans[known+1].From, true)
			}
		}
		unlisted += max(c.Survived-known-cutsBeyond(c, cuts), 0)
		if finding := s.lastOutage(c); finding != nil {
			add(finding, finding.From, finding.To, false)
		} else if o := c.LastOutage; isDisconnected(c) && o.Planned { // the run ended before the client had reconnected
			planned(o.From, o.Cut)
		} else if isDisconnected(c) {
			add(o, o.From, o.To, false)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].from < all[j].from })
	return all, served, unlisted
}

// cutsBeyond returns the number of the client's own disconnects among the outages beyond the list of a connection, of
// which `listed` are listed.
func cutsBeyond(c *shard.Connection, listed int) int {
	if c.Cuts == nil {
		return 0
	}
	ended := 0
	for _, cut := range c.Cuts.List {
		if cut.Lost && cut.ReconnectedAt > 0 && cut.Kind != plan.CutPause {
			ended++
		}
	}
	return max(ended-listed, 0)
}

// lastOutage returns the time without a stream at the end of a connection that lost its stream, and had no other; nil
// if it had.
func (s *Streams) lastOutage(c *shard.Connection) *ledger.Outage {
	if c.Streams == 0 || c.State != ledger.Dropped && c.State != ledger.Waiting {
		return nil
	}
	if c.Longest.From >= c.ClosedAt {
		longest := c.Longest
		return &longest
	}
	// It did not try, or its first connect took longer: it was planned to have a stream until the end of the hold.
	r := &s.m.Runners[c.Runner]
	end := min(c.OpenedAt-c.Connect+s.m.Plan.Hold(), time.Duration(r.EndedUS-r.StartedUS)*time.Microsecond)
	return &ledger.Outage{From: c.ClosedAt, To: max(c.ClosedAt, end)}
}

// effects returns the effects on the streams of each action that began.
func (s *Streams) effects(actions []Action) {
	began := inOrder(actions)
	if len(began) == 0 {
		return
	}
	all, served, unlisted := s.losses()
	counted := 0. // end of the previous effect
	for i, a := range began {
		next := math.Inf(1)
		if i+1 < len(began) {
			next = began[i+1].StartedUnix
		}
		from := sort.Search(len(all), func(n int) bool { return all[n].from >= a.StartedUnix })
		active, end := max(a.StartedUnix, a.EndedUnix), from
		for end < len(all) && all[end].from < next && all[end].from <= active+settleTime.Seconds() {
			active = max(active, all[end].to)
			end++
		}
		a.Effect = s.effect(a, all[from:end], counted, min(next, active+settleTime.Seconds(), s.lastEnd()))
		counted = a.Effect.Until
		if n := countBetween(served, a.StartedUnix, counted); n > 0 {
			a.Effect.Notes = append(a.Effect.Notes, "streams ended "+format.Count(n, "more time")+" at an age at which the service may end one (end.lifetime, TOKEN_TTL): not counted here, because the action may not be the cause")
		}
		if unlisted > 0 {
			a.Effect.Notes = append(a.Effect.Notes, fmt.Sprintf("%s of streams that were lost often %s neither listed nor counted here", format.Count(unlisted, "outage"), format.Form(unlisted, "is", "are")))
		}
	}
}

// inOrder returns the actions that began, in the order of their starts.
func inOrder(actions []Action) (began []*Action) {
	for i := range actions {
		if actions[i].Started() {
			began = append(began, &actions[i])
		}
	}
	slices.SortStableFunc(began, func(a, b *Action) int { return cmp.Compare(a.StartedUnix, b.StartedUnix) })
	return began
}

// countBetween returns the number of times in [from, until).
func countBetween(times []float64, from, until float64) (n int) {
	for _, at := range times {
		if at >= from && at < until {
			n++
		}
	}
	return n
}

// lastEnd returns the time when the last runner ended.
func (s *Streams) lastEnd() (last float64) {
	for _, r := range s.m.Runners {
		last = max(last, float64(r.EndedUS)/1e6)
	}
	return last
}

// effect returns the effect of one action until a time. Losses before it belong to an earlier action.
func (s *Streams) effect(a *Action, losses []loss, counted, until float64) *Effect {
	e := &Effect{Until: until, Times: len(losses)}
	var returns []float64
	backAt := map[*shard.Connection]float64{} // for good
	for _, l := range losses {
		backAt[l.c] = l.to
		if !l.back {
			backAt[l.c] = math.Inf(1)
			e.NeverBack++
		} else {
			returns = append(returns, l.to)
		}
		if took := l.to - l.from; e.Slowest == nil || took > e.Slowest.Seconds {
			e.Slowest = &Outage{ID: l.c.ID, Unix: l.from, Seconds: took}
		}
		if l.Outage == nil {
			continue
		}
		for _, f := range l.Refusals {
			if e.Refused == nil {
				e.Refused = map[string]int{}
			}
			e.Refused[f.Reason] += f.Count
		}
	}
	if e.Lost = len(backAt); e.Lost > 0 {
		after := losses[0].from - a.StartedUnix
		e.FirstLost = &after
	}
	slices.Sort(returns)
	e.Peak = MostWithin(returns, 1)
	e.recordReturns(a.StartedUnix, backAt)
	s.messagesOf(a, losses, e, counted)
	return e
}

// recordReturns records when how many of the streams had reconnected for good.
func (e *Effect) recordReturns(began float64, at map[*shard.Connection]float64) {
	sorted := make([]float64, 0, len(at))
	for _, t := range at {
		sorted = append(sorted, t-began)
	}
	slices.Sort(sorted)
	for share, to := range map[float64]**float64{.5: &e.Back50, .99: &e.Back99, 1: &e.Back100} {
		if rank := int(math.Ceil(share * float64(len(sorted)))); rank > 0 && !math.IsInf(sorted[rank-1], 1) {
			*to = &sorted[rank-1]
		}
	}
}

// MostWithin returns the largest number of these times within any stretch of a width. times must be sorted.
func MostWithin[T float64 | time.Duration](times []T, width T) (most int) {
	first := 0
	for i, at := range times {
		for times[first] <= at-width {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// messagesOf counts the messages that the streams missed, got afterwards and got twice in the time of an action.
func (s *Streams) messagesOf(a *Action, losses []loss, e *Effect, counted float64) {
	unlisted := 0
	type client struct { // its record is another one each time it is read
		runner int
		id     string
	}
	lost := map[client]bool{}
	for _, l := range losses {
		lost[client{l.c.Runner, l.c.ID}] = true
	}
	for c := range s.Records() {
		r := &s.m.Runners[c.Runner]
		_, messages, published := s.m.Topic(c)
		from := a.StartedUnix
		if lost[client{c.Runner, c.ID}] { // with what was on its way to it
			from = max(from-joinWindow.Seconds(), counted)
		}
		var listed uint64 // of missed and duplicated messages
		for _, f := range c.Findings {
			switch f.Kind { //nolint:exhaustive // other findings are not about messages
			case ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindDuplicated:
				listed += max(f.Count, 1)
			}
			if published && f.Kind == ledger.KindLost {
				e.Missed += countSentWithin(messages, f, from, e.Until)
				continue
			}
			if at := unix(r.At(f.At)); at < a.StartedUnix || at >= e.Until {
				continue
			}
			switch f.Kind { //nolint:exhaustive // other findings are listed elsewhere
			case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
				e.Missed += max(f.Count, 1)
			case ledger.KindDuplicated:
				e.Doubled += max(f.Count, 1)
			}
		}
		if c.Unlisted > 0 && c.Missed()+c.Duplicated > listed { // else it is lateness that is not listed
			unlisted++
		}
	}
	if unlisted > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("%s more findings than a record lists: counts of missed and duplicate messages are lower bounds", format.Plural(unlisted, "stream had", "streams had")))
	}
	published := s.Messages.Published != nil
	if !published && !s.m.Service.ByInterval() {
		return
	}
	e.NotResumed = s.notResumed(losses)
	var resumed uint64
	for _, l := range losses {
		switch {
		case published:
			resumed += s.countResumed(l)
		case l.Outage != nil:
			resumed += l.Resumed
		}
	}
	e.Resumed = &resumed
}

// countSentWithin returns how many of the messages that a finding names were sent in a window, in Unix seconds.
func countSentWithin(messages []shard.Message, f ledger.Finding, from, until float64) (n uint64) {
	for number := max(f.From, 1); number <= min(f.To, uint64(len(messages))); number++ {
		if at := float64(messages[number-1].SentUS) / 1e6; at >= from && at < until {
			n++
		}
	}
	return n
}

// countResumed returns how many of the messages that were published and confirmed during an outage of the connection
// arrived on a later stream.
func (s *Streams) countResumed(l loss) (n uint64) {
	_, messages, ok := s.m.Topic(l.c)
	if !ok || !l.back {
		return 0
	}
	from := sort.Search(len(messages), func(i int) bool { return float64(messages[i].SentUS)/1e6 > l.from })
	for i := from; i < len(messages) && float64(messages[i].SentUS)/1e6 < l.to; i++ {
		if messages[i].State == shard.Confirmed && hasArrived(l.c, clamp.Uint64(i)+1) {
			n++
		}
	}
	return n
}

// notResumed counts the messages that were published around the losses, were confirmed, did not arrive, and were not expected.
// Around means from joinWindow before a loss until joinWindow after it.
func (s *Streams) notResumed(losses []loss) (n uint64) {
	counted := map[*shard.Connection]int{} // by connection: the index up to which messages are counted
	for _, l := range losses {
		_, messages, _ := s.m.Topic(l.c)
		from, to := l.from-joinWindow.Seconds(), l.to+joinWindow.Seconds()
		i := max(counted[l.c], sort.Search(len(messages), func(i int) bool { return float64(messages[i].SentUS)/1e6 >= from }))
		for ; i < len(messages) && float64(messages[i].SentUS)/1e6 <= to; i++ {
			if number := clamp.Uint64(i) + 1; messages[i].State == shard.Confirmed && !hasArrived(l.c, number) && !isMissed(l.c, number) {
				n++
			}
		}
		counted[l.c] = i
	}
	return n
}

// isMissed reports whether the message with that number was expected and did not arrive.
func isMissed(c *shard.Connection, number uint64) bool {
	return slices.ContainsFunc(c.Findings, func(f ledger.Finding) bool {
		return f.Kind == ledger.KindLost && f.From <= number && number <= f.To
	})
}

// hasArrived reports whether the message of that number arrived.
func hasArrived(c *shard.Connection, number uint64) bool {
	if number < c.First || number > c.Last || c.First == 0 {
		return false
	}
	return !slices.ContainsFunc(c.Holes, func(hole ledger.Range) bool { return hole[0] <= number && number <= hole[1] })
}
