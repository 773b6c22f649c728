package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Control is the result of the control group of the run, and of its comparison with late messages.
type Control struct {
	URL     string `json:"url,omitempty"` // "": runners had different reference servers
	Remote  bool   `json:"remote"`        // there is a network between the runners and the reference server
	Streams int    `json:"streams"`
	Refused int    `json:"refused"` // failed attempts to open a stream
	Cut     int    `json:"cut"`     // lost streams
	// Received, Late and Lost count events of the group; LongestMS is the maximum lateness of one.
	Received  uint64  `json:"received"`
	Late      uint64  `json:"late"`
	Lost      uint64  `json:"lost"`
	LongestMS float64 `json:"longest_ms"`
	// Decides reports whether the group can separate delays of the generator from delays of the service.
	Decides bool `json:"decides"`
	// LateWithGroup counts messages that were late while the group was late too. LateWithoutGroup counts messages that
	// were late while the group was on time, or that were over LATE_MS later than the group.
	LateWithGroup    uint64 `json:"late_with_group"`
	LateWithoutGroup uint64 `json:"late_without_group"`
	// LateUnknown counts late messages for which the group has no result.
	LateUnknown uint64 `json:"late_unknown,omitempty"`

	worstDelay   time.Duration // the maximum delay of the group while messages were late
	longest      time.Duration // the maximum lateness of the group, if it is over half of the limit; otherwise 0
	longestAt    time.Time     // the time of that lateness
	longestStall time.Duration // the longest stall of a runner while the group was inconclusive, if it is over half of the limit
	unexplained  uint64        // the part of LateUnknown that no stall explains
}

// decides reports whether a control group received events often enough to show any delay that makes a message late.
func decides(c *shard.RunnerControl) bool {
	return c != nil && c.HasEvents() && 2*c.Resolution() < c.Limit()
}

// timeTolerance is the tolerance within which two times count as the same.
const timeTolerance = time.Second

// delayWithin returns by how much the runner, or the network between it and the reference server, may have delayed
// messages between two times. known is false if the group shows no long delay (see explains), but was not open or had a
// late reference server. If known is false, delay is the longest stall of the runner.
func delayWithin(c *shard.RunnerControl, from, to time.Time) (delay time.Duration, known bool) {
	from, to = from.Add(-timeTolerance), to.Add(timeTolerance)
	known = true
	var group, stall time.Duration
	for _, m := range c.Moments {
		end := m.End()
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

// explains reports whether a delay is over half of LATE_MS, so that a message that was sent nearly on time may be late.
func explains(c *shard.RunnerControl, delay time.Duration) bool { return 2*delay > c.Limit() }

// controlOf compares late messages with the control groups of all runners. It returns nil if no runner had a group.
func controlOf(m *shard.Merged) *Control {
	c := m.Control
	if c == nil {
		return nil
	}
	out := &Control{
		URL: c.URL, Remote: c.Remote, Streams: c.Streams, Refused: c.Refused, Cut: c.EndedEarly,
		Received: c.Received, Late: c.Late, Lost: c.Lost, LongestMS: float64(c.LongestUS) / 1000,
	}
	for i := range m.Runners {
		if group := m.Runners[i].ControlGroup; decides(group) {
			out.Decides = true
			out.addGroup(group)
		}
	}
	return out
}

func (s *Streams) setControl() {
	s.Control = controlOf(s.m)
	switch c := s.m.Control; {
	case c == nil || s.Control.Decides:
	case !c.HasEvents():
		cause := ""
		if c.Error != "" {
			cause = " (" + c.Error + ")"
		}
		s.Warnings = append(s.Warnings, fmt.Sprintf("the control group received no event%s, so only stalls of the runners show delays of the generator", cause))
	default:
		s.Warnings = append(s.Warnings, fmt.Sprintf("the control group cannot detect delays of %s: raise CONTROL or LATE_MS", format.Duration(s.m.Plan.LateLimit())))
	}
}

func (c *Control) addGroup(group *shard.RunnerControl) {
	for _, m := range group.Moments {
		if m.Longest > c.longest && explains(group, m.Longest) {
			c.longest, c.longestAt = m.Longest, m.At
		}
		if m.Silent && explains(group, m.Stall) {
			c.longestStall = max(c.longestStall, m.Stall)
		}
		if m.Late == 0 {
			continue
		}
		delay, known := delayWithin(group, m.At, m.End())
		isExplained := explains(group, delay)
		switch {
		case !known:
			c.LateUnknown += clamp.Uint64(m.Late)
			if !isExplained {
				c.unexplained += clamp.Uint64(m.Late)
			}
		case isExplained:
			c.worstDelay = max(c.worstDelay, delay-group.Resolution())
			muchLater := countLaterThan(m, delay+group.Limit())
			c.LateWithoutGroup += clamp.Uint64(muchLater)
			c.LateWithGroup += clamp.Uint64(m.Late - muchLater)
		default:
			c.LateWithoutGroup += clamp.Uint64(m.Late)
		}
	}
}

func countLaterThan(m shard.ControlMoment, limit time.Duration) int {
	if m.Lateness == nil {
		return 0
	}
	h, err := m.Lateness.Unpack()
	if err != nil {
		return 0
	}
	return min(int(h.CountBy([]time.Duration{limit})[1]), m.Late)
}

// decides reports whether there is a conclusive control group.
func (c *Control) decides() bool { return c != nil && c.Decides }

func (c *Control) signal() Signal {
	if c.decides() {
		return SignalControl
	}
	return SignalStall
}

func (c *Control) suspect() string {
	if c.Remote {
		return "the load generator or the network"
	}
	return "the load generator"
}

// lateText states what the control group shows about late messages; "" if it is inconclusive, or if none was late.
func (c *Control) lateText() string {
	if !c.decides() {
		return ""
	}
	all := c.LateWithGroup + c.LateWithoutGroup + c.LateUnknown
	var parts []string
	for _, part := range []struct {
		n    uint64
		text string
	}{
		{c.LateWithGroup, fmt.Sprintf("while the control group was late too, by up to %s, so %s may be the cause", format.Duration(c.worstDelay), c.suspect())},
		{c.LateWithoutGroup, fmt.Sprintf("while the control group was on time, or much less late: %s did not delay %s", c.suspect(), format.Form(c.LateWithoutGroup, "it", "them"))},
		{c.LateUnknown, "while the control group was inconclusive, so the stalls of the runner decide"},
	} {
		switch {
		case part.n == 1 && all == 1:
			parts = append(parts, "the late message arrived "+part.text)
		case part.n == all && all > 0:
			parts = append(parts, fmt.Sprintf("all %s arrived %s", format.Count(all, "late message"), part.text))
		case part.n > 0:
			parts = append(parts, fmt.Sprintf("%s of %s arrived %s", format.Thousands(part.n), format.Count(all, "late message"), part.text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (%s of %s of the control group %s late)",
		strings.Join(parts, "; "), format.Thousands(c.Late), format.Count(c.Received, "event"), format.Form(c.Late, "was", "were"))
}

// delays describes the delays of the load generator that are long enough to make a message late (see explains).
func (c *Control) delays() (out []string) {
	if c.longest > 0 {
		out = append(out, fmt.Sprintf("the control group was up to %s late (at %s UTC)", format.Duration(c.longest), format.Clock(format.Unix(c.longestAt))))
	}
	if c.longestStall > 0 {
		out = append(out, fmt.Sprintf("a runner stalled for %s while the control group was inconclusive", format.Duration(c.longestStall)))
	}
	return out
}

// suspectState states that the load generator, or the network to the reference server, was slow.
func (c *Control) suspectState() string {
	if c.decides() && c.Remote && c.longest > 0 {
		return "the load generator was saturated, or the network was slow"
	}
	return "the load generator was saturated"
}

// Line returns a summary of the control group; "" for nil.
func (c *Control) Line() string {
	if c == nil {
		return ""
	}
	location := "on the same machine as the runners"
	if c.Remote {
		location = "across a network"
	}
	if c.Received == 0 {
		return fmt.Sprintf("%s to a reference server %s: no event arrived", format.Count(c.Streams, "stream"), location)
	}
	out := fmt.Sprintf("%s to a reference server %s: %s, %s late, longest delay %s", format.Count(c.Streams, "stream"), location,
		format.Count(c.Received, "event"), format.Thousands(c.Late), format.Milliseconds(c.LongestMS))
	if c.Lost > 0 || c.Cut > 0 {
		out += fmt.Sprintf("; %s lost, %s", format.Thousands(c.Lost), format.Plural(c.Cut, "stream dropped", "streams dropped"))
	}
	return out
}
