package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// An Interval is the time between two messages of a stream, in seconds.
type Interval struct {
	Planned float64 `json:"planned"`
	Actual  float64 `json:"actual"` // the median over the measured streams; 0: no stream could be measured
	// Deviating is the number of streams whose interval differs from the plan by over 1 % plus the measurement error.
	Deviating int `json:"deviating"`
}

// maxDeviation is the maximum deviation of the interval of a stream from the planned one, as a share.
const maxDeviation = .01

func (s *Streams) sumIntervals() {
	if !s.m.Service.HasInterval() {
		return
	}
	planned := s.m.Plan.Interval()
	s.Interval.Planned = planned.Seconds()
	var intervals []time.Duration
	for _, c := range s.Records() {
		if c.Interval <= 0 {
			continue
		}
		intervals = append(intervals, c.Interval)
		if hasOtherInterval(planned, c) {
			s.Interval.Deviating++
		}
	}
	if len(intervals) == 0 {
		return
	}
	slices.Sort(intervals)
	s.Interval.Actual = intervals[len(intervals)/2].Seconds()
	s.intervalCount = len(intervals)
}

// hasOtherInterval reports whether the interval of a client differs from the planned one by over maxDeviation plus
// IntervalError.
func hasOtherInterval(planned time.Duration, c *shard.Connection) bool {
	return (c.Interval-planned).Abs()-c.IntervalError > time.Duration(maxDeviation*float64(planned))
}

// intervalCheck returns the check that streams have the planned interval. If most streams have a different one, the
// plan is wrong. The run is then invalid, unless it has faults that do not depend on the interval. If only some differ,
// the service is at fault, unless messages are too irregular to measure the interval.
func (s *Streams) intervalCheck() Check {
	i, noun := s.Interval, s.m.Service.Noun()
	c := Check{
		ID: CheckInterval, Name: fmt.Sprintf("interval between %ss", noun), Limit: fmt.Sprintf("%g s, within %g %%", i.Planned, 100*maxDeviation), Actual: fmt.Sprintf("too few %ss", noun), Pass: i.Deviating == 0,
		Why: "counts by interval assume the planned interval", loadDependent: true,
	}
	if s.intervalCount == 0 {
		return c.NotJudged(c.Actual)
	}
	c.Actual = fmt.Sprintf("%.4g s", i.Actual)
	if i.Deviating == 0 {
		return c
	}
	c.Actual += fmt.Sprintf(", %s", format.Plural(i.Deviating, "stream differs", "streams differ"))
	if 2*i.Deviating > s.intervalCount {
		c.Severity, c.weight = SeverityInconclusive, wrongInterval
		c.Reasons = []string{fmt.Sprintf("the service sends a %s every %.3g s, but the plan has %g s: set NOOP_INTERVAL=%.3[2]g, or correct message.every of the description", noun, i.Actual, i.Planned)}
		return c
	}
	if s.isUneven() { // scheduleCheck reports it
		return c.NotJudged("messages are too irregular to measure the interval")
	}
	for _, r := range s.Records() {
		if r.Interval > 0 && hasOtherInterval(s.m.Plan.Interval(), r) {
			c.Reasons = append(c.Reasons, fmt.Sprintf("%s received a %s every %.3g s, not every %g s", r.ID, noun, r.Interval.Seconds(), i.Planned))
		}
	}
	return c
}

// maxUnevenShare is the maximum share of uneven gaps between messages. An uneven gap differs from a multiple of the
// interval by over 32 % of it. If messages arrive up to a quarter of the interval early or late, the share is 13 %.
const maxUnevenShare = .1

func (s *Streams) unevenShare() float64 {
	return float64(s.sum.UnevenGaps) / float64(max(s.Messages.Received, 1))
}

func (s *Streams) isUneven() bool { return s.unevenShare() > maxUnevenShare }

// scheduleCheck returns the check that gaps between messages are as regular as counting by interval assumes. An unmet
// check makes the run invalid if counting by interval found a fault, because the fault may be false.
func (s *Streams) scheduleCheck() Check {
	n, noun, uneven := s.Messages, s.m.Service.Noun(), s.unevenShare()
	c := Check{
		ID: CheckSchedule, Name: fmt.Sprintf("irregular gaps between %ss", noun), Limit: fmt.Sprintf("%g %%", 100*maxUnevenShare),
		Actual: fmt.Sprintf("%.2g %%", 100*uneven), Why: "messages off the schedule are miscounted as missed or duplicated", loadDependent: true,
		Pass: !s.isUneven(),
	}
	switch faults := n.Missed + n.Duplicated + n.Reordered + uint64(s.Interval.Deviating); { // #nosec G115 -- a number of streams
	case c.Pass:
	case faults == 0:
		return c.NotJudged(c.Actual + ", and no fault was found")
	case 2*s.Interval.Deviating > s.intervalCount:
		return c.NotJudged(c.Actual + ", because the service has a different interval")
	default:
		c.Severity, c.weight = SeverityInconclusive, wrongInterval
		c.Reasons = []string{fmt.Sprintf("%.2g %% of the gaps between two %ss differ from a multiple of the interval by over 32 %% of it; counting by interval assumes that a %s arrives at most 30 %% of the interval late, and never early (jitter, docs/accounting.md); %ss counted as missed or duplicated may have arrived once", 100*uneven, noun, noun, noun)}
	}
	return c.notJudgedIf(n.Received == 0, s.reasonNoMessage())
}

// IntervalText states how often a message arrives on each stream, or why this is unknown.
func IntervalText(p *plan.Plan, s *shard.Service) string {
	switch {
	case p.Published():
		return fmt.Sprintf("a message every %.4g s on each stream, published at %v/s to %s", p.NoopInterval, p.PublishRate, format.Count(p.Topics, "topic"))
	case !s.CountsMessages():
		return "messages not checked"
	case !s.HasInterval():
		return "messages not published by soak"
	}
	return fmt.Sprintf("a %s every %v s", s.Noun(), p.NoopInterval)
}
