package shard

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// Control has the results of the control group of a runner: a few streams to a reference server. The runner reads them
// in the same way as the streams under test. Other counts of the shard exclude them.
type Control struct {
	URL        string `json:"url"`
	Remote     bool   `json:"remote,omitempty"` // the reference is on another machine
	Streams    int    `json:"streams"`          // planned
	LateMS     int    `json:"late_ms"`          // lateness above which an event counts as late
	Opened     int    `json:"opened"`           // opened streams, with reconnects
	Refused    int    `json:"refused"`          // failed attempts to open a stream
	EndedEarly int    `json:"ended_early"`      // streams that ended early
	Error      string `json:"error,omitempty"`  // of the first attempt or stream that failed
	Lost       uint64 `json:"lost"`             // missing events
	ControlCounts
}

// ControlCounts counts events of a control group, in a bucket or in the run.
type ControlCounts struct {
	Expected uint64 `json:"expected"`
	Received uint64 `json:"received"`
	Late     uint64 `json:"late"` // by more than Control.LateMS
	// LongestUS is the longest lateness that the runner or the network caused, without the delay of the reference.
	LongestUS int64 `json:"longest_us"`
	// ReferenceUS is the longest delay of the reference itself.
	ReferenceUS int64 `json:"reference_us,omitempty"`
}

// Add adds the counts of another group or bucket, and keeps the longer times.
func (c *ControlCounts) Add(o ControlCounts) {
	c.Expected += o.Expected
	c.Received += o.Received
	c.Late += o.Late
	c.LongestUS = max(c.LongestUS, o.LongestUS)
	c.ReferenceUS = max(c.ReferenceUS, o.ReferenceUS)
}

// CountEvent counts an event, as late if lateness exceeds limit. lateness excludes the delay of the reference.
func (c *ControlCounts) CountEvent(lateness, reference, limit time.Duration) {
	c.Received++
	if lateness > limit {
		c.Late++
	}
	c.LongestUS = max(c.LongestUS, lateness.Microseconds())
	c.ReferenceUS = max(c.ReferenceUS, reference.Microseconds())
}

// HasEvents reports whether the group received any event.
func (c *Control) HasEvents() bool { return c != nil && c.Received > 0 }

// addControl adds the control group of a shard to the control group of the run. It also stores the group of the shard,
// with its moments, in the last runner.
func (m *Merged) addControl(s *Shard) {
	if s.Control == nil {
		return
	}
	group := *s.Control
	control := &RunnerControl{Control: group}
	if group.HasEvents() {
		control.Moments = momentsOf(s)
	}
	m.Runners[len(m.Runners)-1].ControlGroup = control
	if m.Control == nil {
		m.Control = &group
		return
	}
	c := m.Control
	c.Remote = c.Remote || group.Remote
	c.Streams += group.Streams
	c.Opened += group.Opened
	c.Refused += group.Refused
	c.EndedEarly += group.EndedEarly
	c.Lost += group.Lost
	c.ControlCounts.Add(group.ControlCounts)
	c.Error = cmp.Or(c.Error, group.Error)
	if c.URL != group.URL {
		c.URL = ""
	}
}

func (s *Shard) checkControl() error {
	c := s.Control
	if c == nil {
		return nil
	}
	if len(c.URL)+len(c.Error) > maxText {
		return newTooLongError(c.URL + c.Error)
	}
	counts := []ControlCounts{c.ControlCounts, {Expected: c.Lost}}
	for _, b := range s.Series {
		if b.Control != nil {
			counts = append(counts, *b.Control)
		}
	}
	isInvalid := func(n ControlCounts) bool {
		return !areCounts(n.Expected, n.Received, n.Late) || !areCounts(n.LongestUS, n.ReferenceUS)
	}
	switch {
	case slices.ContainsFunc(counts, isInvalid), !areCounts(c.Streams, c.Opened, c.Refused, c.EndedEarly, c.LateMS):
		return errors.New("impossible count of the control group")
	case int64(c.LateMS) > maxLength.Milliseconds():
		return errors.New("impossible limit of lateness of the control group")
	}
	return nil
}

// A RunnerControl is the control group of one runner with its relevant moments.
type RunnerControl struct {
	Control
	Moments []ControlMoment // by time; empty if the group received no event
}

// A ControlMoment is a bucket in which the control group was late or provides no evidence, the runner stalled, or
// messages were late.
type ControlMoment struct {
	At          time.Time     // start of the bucket
	Longest     time.Duration // longest lateness of the control group
	Silent      bool          // no evidence: the group received too few events, or its reference was late
	Stall       time.Duration // longest stall of the runner
	Late        int           // late messages of the streams under test
	Lateness    *Packed       // their lateness; nil: unknown
	Undisturbed *LateMessages // the late messages of undisturbed streams; nil: Late and Lateness count only these
}

// End returns the end of the bucket plus the stall: a stall may continue in the next bucket.
func (m *ControlMoment) End() time.Time { return m.At.Add(BucketWidth + m.Stall) }

// Undisturbed returns a copy with the lateness of undisturbed streams only, or nil if c is nil. The lateness on a slow
// stream is not evidence about other streams.
func (c *RunnerControl) Undisturbed() *RunnerControl {
	if c == nil {
		return nil
	}
	out := *c
	out.Moments = slices.Clone(c.Moments)
	for i := range out.Moments {
		if m := &out.Moments[i]; m.Undisturbed != nil {
			m.Late, m.Lateness, m.Undisturbed = m.Undisturbed.Late, m.Undisturbed.Lateness, nil
		}
	}
	return &out
}

// isEvidence reports whether the group received at least half of the expected events of a bucket. In a complete bucket,
// all streams of the group have expected events. With fewer events, a delay between two of them is undetectable.
func (c *ControlCounts) isEvidence(streams int, complete bool) bool {
	expected := c.Expected
	if complete {
		expected = max(expected, clamp.Uint64(streams)*uint64(BucketWidth/controlEvery))
	}
	return c.Received > 0 && 2*c.Received >= expected
}

// maxMoments limits the moments of one runner. A run may have a thousand runners.
const maxMoments = 1 << 12

// momentsOf returns the moments of a shard, at most maxMoments.
func momentsOf(s *Shard) (out []ControlMoment) {
	threshold := s.Control.Limit() / 2
	for i, b := range s.Series {
		m := ControlMoment{At: time.Unix(b.Unix, 0), Stall: time.Duration(b.StallMS) * time.Millisecond, Late: b.Late, Silent: true}
		if c := b.Control; c != nil {
			m.Longest = time.Duration(c.LongestUS) * time.Microsecond
			// The runner may have started inside the first bucket, and ended inside the last one.
			complete := i > 0 && i < len(s.Series)-1
			m.Silent = !c.isEvidence(s.Control.Streams, complete) || time.Duration(c.ReferenceUS)*time.Microsecond > threshold
		}
		if b.Late > 0 {
			m.Lateness, m.Undisturbed = b.Lateness, b.Undisturbed
		}
		if resolution := s.Control.Resolution(); m.Longest+resolution > threshold || m.Silent || m.Late > 0 || m.Stall > threshold {
			out = append(out, m)
		}
		if len(out) == maxMoments {
			break
		}
	}
	return out
}

// controlEvery is the time between two events of a stream of the group.
const controlEvery = time.Second

// Resolution returns the longest stall that fits between two events of the group.
func (c *Control) Resolution() time.Duration { return controlEvery / time.Duration(max(c.Streams, 1)) }

// Limit returns the lateness above which an event counts as late.
func (c *Control) Limit() time.Duration { return time.Duration(c.LateMS) * time.Millisecond }
