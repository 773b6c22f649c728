package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Control is what the control group of the run saw, and what it says of what was late on the streams.
type Control struct {
	URL     string `json:"url,omitempty"` // "" where runners had different ones
	Away    bool   `json:"away"`          // a network lies between the runners and the reference target
	Streams int    `json:"streams"`
	Refused int    `json:"refused"` // attempts to open one
	Cut     int    `json:"cut"`
	// Received, Late and Lost are events of the group; LongestMS is the longest lateness of any.
	Received  uint64  `json:"received"`
	Late      uint64  `json:"late"`
	Lost      uint64  `json:"lost"`
	LongestMS float64 `json:"longest_ms"`
	// Decides reports whether the group can separate delays of the generator from delays of the service.
	Decides bool `json:"decides"`
	// LateBeside are messages that were late while the group was late too; LateAlone are those that were late while the
	// group was in time, or by over LATE_MS more than it.
	LateBeside uint64 `json:"late_beside"`
	LateAlone  uint64 `json:"late_alone"`
	// LateUnknown are those that were late while the group told nothing.
	LateUnknown uint64 `json:"late_unknown,omitempty"`

	worst     time.Duration // of the group, in stretches with late messages
	saturated time.Duration // the longest by which it was late at all, where that is over half of the limit
	at        time.Time     // when that was
	stalled   time.Duration // the longest stall of a runner in a stretch of which the group tells nothing
	unstalled uint64        // those of LateUnknown that no stall explains
}

// decides says that the control group of a runner tells anything: it was held, and no delay fits between its events.
func decides(c *shard.Controlled) bool {
	return c != nil && c.Held() && 2*c.Resolution() < c.Limit()
}

// slack is by how much two things that happened at the same time may be counted apart.
const slack = time.Second

// during is by how much the runner, or the network between it and the reference, may have delayed what came within that
// time. It is not known where the group was not held or its own reference was late; then the stalls of the runner are it.
func during(c *shard.Controlled, from, to time.Time) (delay time.Duration, known bool) {
	from, to = from.Add(-slack), to.Add(slack)
	known = true
	var group, stall time.Duration
	for _, m := range c.Moments {
		end := m.At.Add(shard.BucketWidth)
		if !m.At.Add(-m.Longest).After(to) && !end.Before(from) {
			group = max(group, m.Longest)
		}
		if !m.At.After(to) && !end.Before(from) {
			known, stall = known && !m.Silent, max(stall, m.Stall)
		}
	}
	if group += c.Resolution(); known || explains(c, group) {
		return group, true
	}
	return stall, false
}

// explains says that a delay by so much makes a message late that the service sent in time, or nearly so.
func explains(c *shard.Controlled, delay time.Duration) bool { return 2*delay > c.Limit() }

// controlOf asks the control groups of all runners about what was late; nil where there were none.
func controlOf(m *shard.Merged) *Control {
	c := m.Control
	if c == nil {
		return nil
	}
	out := &Control{
		URL: c.URL, Away: c.Away, Streams: c.Streams, Refused: c.Refused, Cut: c.Cut,
		Received: c.Received, Late: c.Late, Lost: c.Lost, LongestMS: float64(c.LongestUS) / 1000,
	}
	for i := range m.Runners {
		if group := m.Runners[i].Controlled; decides(group) {
			out.Decides = true
			out.ask(group)
		}
	}
	return out
}

// controlGroup warns of a group that decides nothing.
func (s *Streams) controlGroup() {
	s.Control = controlOf(s.m)
	switch c := s.m.Control; {
	case c == nil || s.Control.Decides:
	case !c.Held():
		s.Warnings = append(s.Warnings, fmt.Sprintf("the control group was never held (%s), so the stalls of the runners alone tell delays of the generator from those of the service",
			firstOf(c.Error, "no event came")))
	default:
		s.Warnings = append(s.Warnings, fmt.Sprintf("the control group tells nothing of delays of %s: raise CONTROL, or LATE_MS", format.Duration(s.m.Plan.Late())))
	}
}

func firstOf(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// ask adds what the group of one runner says.
func (out *Control) ask(group *shard.Controlled) {
	for _, m := range group.Moments {
		if m.Longest > out.saturated && explains(group, m.Longest) {
			out.saturated, out.at = m.Longest, m.At
		}
		if m.Silent && explains(group, m.Stall) {
			out.stalled = max(out.stalled, m.Stall)
		}
		if m.Late == 0 {
			continue
		}
		delay, known := during(group, m.At, m.At.Add(shard.BucketWidth))
		explained := explains(group, delay)
		switch {
		case !known:
			out.LateUnknown += clamp.Uint64(m.Late)
			if !explained {
				out.unstalled += clamp.Uint64(m.Late)
			}
		case explained:
			out.worst = max(out.worst, delay)
			alone := laterThan(m, delay+group.Limit())
			out.LateAlone += clamp.Uint64(alone)
			out.LateBeside += clamp.Uint64(m.Late - alone)
		default:
			out.LateAlone += clamp.Uint64(m.Late)
		}
	}
}

// laterThan is how many of the late messages of a moment were late by more than that.
func laterThan(m shard.Moment, limit time.Duration) int {
	if m.LateBy == nil {
		return 0
	}
	h, err := m.LateBy.Unpack()
	if err != nil {
		return 0
	}
	return min(int(h.CountBy([]time.Duration{limit})[1]), m.Late)
}

// lateByGenerator says that so many late messages would be within the limit without what the generator delayed.
func (s *Streams) lateByGenerator(limit int) bool {
	c := s.Control
	if c == nil || !c.Decides {
		return stallsNoops(s.m)
	}
	alone := c.LateAlone + c.unstalled
	if rest := s.Messages.Late - min(s.Messages.Late, c.LateBeside+c.LateAlone+c.LateUnknown); rest > 0 && !s.undecidedStalled() {
		alone += rest // of no runner whose group could not be asked
	}
	return alone <= uint64(max(limit, 0))
}

// undecidedStalled says that a runner stalled whose control group tells nothing.
func (s *Streams) undecidedStalled() bool {
	for i := range s.m.Runners {
		r := &s.m.Runners[i]
		if !decides(r.Controlled) && time.Duration(r.StallMaxUS)*time.Microsecond > s.m.Plan.Late()/2 {
			return true
		}
	}
	return false
}

// orControl puts a check in doubt that rests on the clock alone, where all that broke it may have been delayed: the
// control group was late meanwhile.
func (s *Streams) orControl(c Check, kinds ...ledger.Kind) Check {
	if !c.Pass && c.weight == byClock && s.whileControlLate(kinds) {
		c = c.InDoubt()
		c.Reasons = []string{fmt.Sprintf("%s: %s, the limit is %s, all while the control group was late too, by up to %s: the fault may be %s",
			c.Name, c.Actual, c.Limit, format.Duration(s.Control.saturated), s.Control.whose())}
	}
	return c
}

// whileControlLate says that every fault of these kinds was noticed while the control group of the same runner was late.
func (s *Streams) whileControlLate(kinds []ledger.Kind) bool {
	if s.Control == nil || !s.Control.Decides {
		return false
	}
	any := false
	for r := range s.Records() {
		runner := &s.m.Runners[r.Runner]
		for _, f := range r.Findings {
			if !slices.Contains(kinds, f.Kind) {
				continue
			}
			group := runner.Controlled
			if any = true; r.Unlisted > 0 || !decides(group) {
				return false
			}
			at := runner.At(f.At)
			if delay, _ := during(group, at.Add(-s.m.Plan.Interval()*3/2), at); !explains(group, delay) || delay < s.least(r, f) {
				return false
			}
		}
	}
	return any
}

// least is the shortest delay that makes a fault of a stream whose messages were all sent in time: a silence is longer than
// one between two messages by so much, and a slot is empty only where its message came half an interval later at least.
func (s *Streams) least(r *shard.Connection, f ledger.Finding) time.Duration {
	interval := s.m.Plan.Interval()
	switch slots := float64(min(f.Count, 1<<20)); {
	case f.Kind == ledger.KindDropped:
		interval = cmp.Or(s.m.Service.Heartbeat(), interval)
		return f.At - max(r.LastAt, r.OpenedAt) - interval*3/2
	case f.Kind == ledger.KindUnsent:
		return time.Duration((slots - .5) * float64(interval))
	case slots > 1: // the last one may have been due a moment before the end
		return time.Duration((slots - 1) * float64(interval))
	}
	return 0
}

// delayed is by how much the generator, or the network, may have delayed a connection within a time of which it was
// without a stream.
func (s *Streams) delayed(runner int, from, to ledger.Instant) time.Duration {
	r := &s.m.Runners[runner]
	group := r.Controlled
	if !decides(group) {
		return time.Duration(r.StallMaxUS) * time.Microsecond
	}
	if delay, _ := during(group, r.At(from), r.At(to)); explains(group, delay) {
		return delay
	}
	return 0
}

// overdueByGenerator says that the generator may have seen the end of each stream late that was open for too long.
func (s *Streams) overdueByGenerator() bool {
	var explained uint64
	for r := range s.Records() {
		for _, f := range r.Findings {
			if f.Kind == ledger.KindOverdue && s.delayed(r.Runner, f.At, f.At) > s.m.Plan.Late()/2 {
				explained++
			}
		}
	}
	return s.overdue > 0 && explained >= s.overdue
}

// saturates says how the group was delayed by so much that messages may be late by that alone.
func (c *Control) saturates() (out []string) {
	if c.saturated > 0 {
		out = append(out, fmt.Sprintf("had their control group late too, by up to %s (at %s UTC)", format.Duration(c.saturated), c.at.UTC().Format(time.TimeOnly)))
	}
	if c.stalled > 0 {
		out = append(out, fmt.Sprintf("once stalled for %s while their control group told nothing", format.Duration(c.stalled)))
	}
	return out
}

// whose says of whom a late control group tells.
func (c *Control) whose() string {
	if c.Away {
		return "the generator's or the network's"
	}
	return "the generator's"
}

// besides says in a sentence what the control group says of late messages; "" if nothing.
func (c *Control) besides(noun string) string {
	if c == nil || !c.Decides {
		return ""
	}
	notWhose := "the generator's"
	if c.Away {
		notWhose += ", nor that of the network to the reference"
	}
	var all uint64
	var said []string
	for _, part := range []struct {
		n    uint64
		text string
	}{
		{c.LateBeside, fmt.Sprintf("came while the control group was late too, by up to %s: their delay is %s", format.Duration(c.worst), c.whose())},
		{c.LateAlone, "came while the control group was in time, or far less late: their delay is not " + notWhose},
		{c.LateUnknown, "came while the control group told nothing, so the stalls of the runner decide"},
	} {
		if all += part.n; part.n > 0 {
			said = append(said, format.Thousands(part.n)+" "+part.text)
		}
	}
	of := fmt.Sprintf("of %s late %ss ", format.Thousands(all), noun)
	switch len(said) {
	case 0:
		return ""
	case 1:
		_, text, _ := strings.Cut(said[0], " ")
		of, said[0] = fmt.Sprintf("all %s late %ss ", format.Thousands(all), noun), text
	}
	return fmt.Sprintf("%s%s (of the events of the control group %s of %s were late)", of, strings.Join(said, "; "), format.Thousands(c.Late), format.Thousands(c.Received))
}

// Line sums the group up for people.
func (c *Control) Line() string {
	where := "on the runners' own machine"
	if c.Away {
		where = "across a network"
	}
	if c.Received == 0 {
		return fmt.Sprintf("%s to a reference %s: none was held", format.Count(c.Streams, "stream"), where)
	}
	out := fmt.Sprintf("%s to a reference %s: %s, %s late, longest %s", format.Count(c.Streams, "stream"), where,
		format.Count(c.Received, "event"), format.Thousands(c.Late), format.Milliseconds(c.LongestMS))
	if c.Lost > 0 || c.Cut > 0 {
		out += fmt.Sprintf("; %s lost, %s", format.Thousands(c.Lost), format.Plural(c.Cut, "stream cut", "streams cut"))
	}
	return out
}
