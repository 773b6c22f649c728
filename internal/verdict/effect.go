package verdict

import (
	"cmp"
	"fmt"
	"iter"
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

// settleTime is how long the effect of an action continues after the action has ended and all streams have reconnected.
// Later losses are not attributed to the action.
const settleTime = time.Minute

// An Effect counts the lost streams, the reconnects and the messages after the start of an action. It ends when the
// command has ended, all streams have reconnected and no stream was lost for a minute. It ends earlier if the next
// action starts or the run ends. A lost stream counts for the last action before the loss, even if it reconnects after
// the next action has started. Times are seconds since the start of the action, except for Until and the start of the
// slowest outage, which are Unix times.
type Effect struct {
	Until          float64 `json:"until_unix_s"`
	Lost           int     `json:"streams_lost"`
	Losses         int     `json:"times_lost"` // losses; one stream may be lost several times
	NotReconnected int     `json:"not_reconnected"`
	// FirstLost is the time of the first lost stream; nil: none was lost. Reconnected50 is the time from which 50 % of
	// the lost streams were open without another loss; nil: fewer reconnected.
	FirstLost      *float64 `json:"first_lost_s,omitempty"`
	Reconnected50  *float64 `json:"reconnected_50_s,omitempty"`
	Reconnected99  *float64 `json:"reconnected_99_s,omitempty"`
	Reconnected100 *float64 `json:"reconnected_100_s,omitempty"`
	// Peak is the maximum number of streams that reconnected within a second.
	Peak    int            `json:"connects_per_second_peak"`
	Refused map[string]int `json:"refused_attempts,omitempty"` // refused attempts of lost streams, by reason
	Missed  uint64         `json:"missed"`
	// Resumed is the number of messages sent during outages that arrived after the reconnect; nil if it is not known.
	Resumed *uint64 `json:"resumed,omitempty"`
	// NotResumed counts confirmed messages that were published around an outage and did not arrive, but were not
	// expected because the client could not resume.
	NotResumed uint64  `json:"not_resumed,omitempty"`
	Duplicated uint64  `json:"duplicated"`
	Slowest    *Outage `json:"slowest,omitempty"` // the longest outage
	// Notes state which data the counts omit.
	Notes []string `json:"notes,omitempty"`
}

// A loss is an outage of a client after it had a stream. Times are Unix seconds.
type loss struct {
	*ledger.Outage                   // nil: only from and to are known
	client         int               // index of the client
	c              *shard.Connection // a copy
	from, to       float64
	reconnected    bool
}

// losses returns the losses of all clients, ordered by their start. lifetimeEnds has the Unix times at which
// streams ended at an age at which the service may end them. unlisted is the number of further losses, whose times are
// unknown.
func (s *Streams) losses() (all []loss, lifetimeEnds []float64, unlisted int) {
	for client, c := range s.Records() {
		r := &s.m.Runners[c.Runner]
		var record *shard.Connection // a copy; nil: no loss so far
		add := func(o *ledger.Outage, from, to ledger.Instant, reconnected bool) {
			if record == nil {
				clone := *c
				record = &clone
			}
			all = append(all, loss{o, client, record, format.Unix(r.At(from)), format.Unix(r.At(to)), reconnected})
		}
		cuts := 0
		addPlanned := func(at ledger.Instant, byClient bool) { // an end that the action did not cause
			if byClient {
				cuts++
			} else {
				lifetimeEnds = append(lifetimeEnds, format.Unix(r.At(at)))
			}
		}
		for i := range c.Outages {
			if o := &c.Outages[i]; o.Planned {
				addPlanned(o.From, o.Cut)
			} else {
				add(o, o.From, o.To, true)
			}
		}
		listed := len(c.Outages)
		for ; !s.m.Service.EndsStreams() && listed+1 < len(c.Spans); listed++ { // Spans may list more than Outages
			if stream := c.Spans[listed]; stream.Planned {
				addPlanned(stream.To, stream.Cut)
			} else {
				add(nil, stream.To, c.Spans[listed+1].From, true)
			}
		}
		unlisted += max(c.Survived-listed-unlistedCuts(c, cuts), 0)
		if last := s.lastOutage(c); last != nil {
			add(last, last.From, last.To, false)
		} else if o := c.LastOutage; c.IsDisconnected() && o.Planned { // the run ended before the client had reconnected
			addPlanned(o.From, o.Cut)
		} else if c.IsDisconnected() {
			add(o, o.From, o.To, false)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].from < all[j].from })
	return all, lifetimeEnds, unlisted
}

// unlistedCuts returns how many unlisted outages of a client are cuts. listed is the number of its listed cuts.
func unlistedCuts(c *shard.Connection, listed int) int {
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

// lastOutage returns the last outage of a client that counts as dropped; nil for other clients.
func (s *Streams) lastOutage(c *shard.Connection) *ledger.Outage {
	if c.Streams == 0 || c.State != ledger.Dropped && c.State != ledger.Waiting {
		return nil
	}
	if c.Longest.From >= c.ClosedAt {
		longest := c.Longest
		return &longest
	}
	// The client did not try to reconnect, or its first connect took longer than this outage. The outage lasts to the
	// end of the hold phase.
	r := &s.m.Runners[c.Runner]
	end := min(c.OpenedAt-c.Connect+s.m.Plan.Hold(), time.Duration(r.EndedUS-r.StartedUS)*time.Microsecond)
	return &ledger.Outage{From: c.ClosedAt, To: max(c.ClosedAt, end)}
}

func (s *Streams) effects(actions []Action) {
	all, lifetimeEnds, unlisted := s.losses()
	previousEnd := 0. // end of the effect of the previous action
	for a, next := range startedActions(actions) {
		from := sort.Search(len(all), func(n int) bool { return all[n].from >= a.StartedUnix })
		active, end := max(a.StartedUnix, a.EndedUnix), from
		for end < len(all) && all[end].from < next && all[end].from <= active+settleTime.Seconds() {
			active = max(active, all[end].to)
			end++
		}
		a.Effect = s.effect(a, all[from:end], previousEnd, min(next, active+settleTime.Seconds(), s.lastEnd()))
		previousEnd = a.Effect.Until
		if n := countBetween(lifetimeEnds, a.StartedUnix, previousEnd); n > 0 {
			a.Effect.Notes = append(a.Effect.Notes, "streams ended "+format.Count(n, "more time")+" at an age at which the service may end a stream (end.lifetime, TOKEN_TTL): not counted here, because the action may not be the cause")
		}
		if unlisted > 0 {
			a.Effect.Notes = append(a.Effect.Notes, fmt.Sprintf("%s of streams that were lost often %s neither listed nor counted here", format.Count(unlisted, "outage"), format.Form(unlisted, "is", "are")))
		}
	}
}

// startedActions yields the started actions in order, each with the start of the next one; infinity for the last.
func startedActions(actions []Action) iter.Seq2[*Action, float64] {
	var started []*Action
	for i := range actions {
		if actions[i].Started() {
			started = append(started, &actions[i])
		}
	}
	slices.SortStableFunc(started, func(a, b *Action) int { return cmp.Compare(a.StartedUnix, b.StartedUnix) })
	return func(yield func(*Action, float64) bool) {
		for i, a := range started {
			next := math.Inf(1)
			if i+1 < len(started) {
				next = started[i+1].StartedUnix
			}
			if !yield(a, next) {
				return
			}
		}
	}
}

func countBetween(times []float64, from, until float64) (n int) {
	for _, at := range times {
		if at >= from && at < until {
			n++
		}
	}
	return n
}

func (s *Streams) lastEnd() (last float64) {
	for _, r := range s.m.Runners {
		last = max(last, float64(r.EndedUS)/1e6)
	}
	return last
}

// effect returns the effect of one action until a time. Messages before previousEnd belong to the previous action.
func (s *Streams) effect(a *Action, losses []loss, previousEnd, until float64) *Effect {
	e := &Effect{Until: until, Losses: len(losses)}
	var reconnects []float64
	reconnectedAt := map[int]float64{} // by client: after its last loss
	for _, l := range losses {
		reconnectedAt[l.client] = l.to
		if !l.reconnected {
			reconnectedAt[l.client] = math.Inf(1)
			e.NotReconnected++
		} else {
			reconnects = append(reconnects, l.to)
		}
		if length := l.to - l.from; e.Slowest == nil || length > e.Slowest.Seconds {
			e.Slowest = &Outage{ID: l.c.ID, Unix: l.from, Seconds: length}
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
	if e.Lost = len(reconnectedAt); e.Lost > 0 {
		delay := losses[0].from - a.StartedUnix
		e.FirstLost = &delay
	}
	slices.Sort(reconnects)
	e.Peak = MaxPerInterval(reconnects, 1)
	e.recordReconnects(a.StartedUnix, reconnectedAt)
	s.countMessages(a, losses, e, previousEnd)
	return e
}

// recordReconnects sets the times at which 50, 99 and 100 % of the streams had reconnected after their last loss. A
// time stays nil if fewer streams reconnected.
func (e *Effect) recordReconnects(start float64, reconnectedAt map[int]float64) {
	sorted := make([]float64, 0, len(reconnectedAt))
	for _, t := range reconnectedAt {
		sorted = append(sorted, t-start)
	}
	slices.Sort(sorted)
	for share, to := range map[float64]**float64{.5: &e.Reconnected50, .99: &e.Reconnected99, 1: &e.Reconnected100} {
		if rank := int(math.Ceil(share * float64(len(sorted)))); rank > 0 && !math.IsInf(sorted[rank-1], 1) {
			*to = &sorted[rank-1]
		}
	}
}

// MaxPerInterval returns the maximum number of times within any interval of the given width. times must be sorted.
func MaxPerInterval[T float64 | time.Duration](times []T, width T) (maximum int) {
	first := 0
	for i, at := range times {
		for times[first] <= at-width {
			first++
		}
		maximum = max(maximum, i-first+1)
	}
	return maximum
}

// countMessages sets Missed, Duplicated, Resumed and NotResumed. It adds a note if a count is a lower bound.
func (s *Streams) countMessages(a *Action, losses []loss, e *Effect, previousEnd float64) {
	incomplete := 0 // records that do not list all missed and duplicated messages
	lost := map[int]bool{}
	for _, l := range losses {
		lost[l.client] = true
	}
	for client, c := range s.Records() {
		r := &s.m.Runners[c.Runner]
		_, messages, published := s.m.Topic(c)
		from := a.StartedUnix
		if lost[client] { // messages that were in transit when the action started also count
			from = max(from-streamMargin.Seconds(), previousEnd)
		}
		var listed uint64 // number of missed and duplicated messages in the findings
		for _, f := range c.Findings {
			switch f.Kind { //nolint:exhaustive // other findings are not about messages
			case ledger.KindLost, ledger.KindUnsent, ledger.KindTail, ledger.KindDuplicated:
				listed += max(f.Count, 1)
			}
			if published && f.Kind == ledger.KindLost {
				e.Missed += countSentWithin(messages, f, from, e.Until)
				continue
			}
			if at := format.Unix(r.At(f.At)); at < a.StartedUnix || at >= e.Until {
				continue
			}
			switch f.Kind { //nolint:exhaustive // other findings are listed elsewhere
			case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
				e.Missed += max(f.Count, 1)
			case ledger.KindDuplicated:
				e.Duplicated += max(f.Count, 1)
			}
		}
		if c.Unlisted > 0 && c.Missed()+c.Duplicated > listed { // otherwise only late messages are unlisted
			incomplete++
		}
	}
	if incomplete > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("%s more findings than a record lists: counts of missed and duplicate messages are lower bounds", format.Plural(incomplete, "stream had", "streams had")))
	}
	published := s.Messages.Published != nil
	if !published && !s.m.Service.HasInterval() {
		return
	}
	e.NotResumed = s.notResumed(losses)
	var resumed uint64
	for _, l := range losses {
		switch {
		case published:
			resumed += s.countResumed(l)
		case l.Outage != nil:
			resumed += l.Replayed
		}
	}
	e.Resumed = &resumed
}

// countSentWithin returns how many of the messages that a finding names were sent between two times, in Unix seconds.
func countSentWithin(messages []shard.Message, f ledger.Finding, from, until float64) (n uint64) {
	for number := max(f.From, 1); number <= min(f.To, uint64(len(messages))); number++ {
		if at := float64(messages[number-1].SentUS) / 1e6; at >= from && at < until {
			n++
		}
	}
	return n
}

// countResumed returns how many of the confirmed messages that were published during an outage arrived.
func (s *Streams) countResumed(l loss) (n uint64) {
	_, messages, ok := s.m.Topic(l.c)
	if !ok || !l.reconnected {
		return 0
	}
	from := sort.Search(len(messages), func(i int) bool { return float64(messages[i].SentUS)/1e6 > l.from })
	for i := from; i < len(messages) && float64(messages[i].SentUS)/1e6 < l.to; i++ {
		if messages[i].State == shard.Confirmed && l.c.HasReceived(clamp.Uint64(i)+1) {
			n++
		}
	}
	return n
}

// notResumed counts confirmed messages, published around a loss, that did not arrive and were not expected. Around a
// loss means from streamMargin before its start to streamMargin after its end.
func (s *Streams) notResumed(losses []loss) (n uint64) {
	next := map[int]int{} // by client: the index of the next message to count
	for _, l := range losses {
		_, messages, _ := s.m.Topic(l.c)
		from, to := l.from-streamMargin.Seconds(), l.to+streamMargin.Seconds()
		i := max(next[l.client], sort.Search(len(messages), func(i int) bool { return float64(messages[i].SentUS)/1e6 >= from }))
		for ; i < len(messages) && float64(messages[i].SentUS)/1e6 <= to; i++ {
			if number := clamp.Uint64(i) + 1; messages[i].State == shard.Confirmed && !l.c.HasReceived(number) && !isMissed(l.c, number) {
				n++
			}
		}
		next[l.client] = i
	}
	return n
}

func isMissed(c *shard.Connection, number uint64) bool {
	return slices.ContainsFunc(c.Findings, func(f ledger.Finding) bool {
		return f.Kind == ledger.KindLost && f.From <= number && number <= f.To
	})
}
