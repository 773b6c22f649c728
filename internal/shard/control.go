package shard

import (
	"errors"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// Control is what the control group of a runner saw: a few streams to a reference target, read beside those that are
// soaked. They are counted nowhere else.
type Control struct {
	URL     string `json:"url"`
	Away    bool   `json:"away,omitempty"`  // a network lies between runner and reference
	Streams int    `json:"streams"`         // that were to be held
	LateMS  int    `json:"late_ms"`         // above which an event counts as late
	Opened  int    `json:"opened"`          // as often as any was opened
	Refused int    `json:"refused"`         // attempts that failed
	Cut     int    `json:"cut"`             // streams that ended by themselves
	Error   string `json:"error,omitempty"` // of the first of these two
	Lost    uint64 `json:"lost"`            // events, by their numbers, or never come
	ControlCounts
}

// ControlCounts are events of a control group, in a bucket or in all.
type ControlCounts struct {
	Owed     uint64 `json:"owed"`
	Received uint64 `json:"received"`
	Late     uint64 `json:"late"` // over LATE_MS
	// LongestUS is the longest lateness that was not the reference's own: the reader's, or the network's.
	LongestUS int64 `json:"longest_us"`
	// ReferenceUS is the longest time by which the reference itself was late to send.
	ReferenceUS int64 `json:"reference_us,omitempty"`
}

// Add adds the counts of other.
func (c *ControlCounts) Add(o ControlCounts) {
	c.Owed += o.Owed
	c.Received += o.Received
	c.Late += o.Late
	c.LongestUS = max(c.LongestUS, o.LongestUS)
	c.ReferenceUS = max(c.ReferenceUS, o.ReferenceUS)
}

// Note counts an event of a control group: by how much it was late beside the delay of the reference, and that delay.
func (c *ControlCounts) Note(late, reference, limit time.Duration) {
	c.Received++
	if late > limit {
		c.Late++
	}
	c.LongestUS = max(c.LongestUS, late.Microseconds())
	c.ReferenceUS = max(c.ReferenceUS, reference.Microseconds())
}

// Held says that the group was ever held.
func (c *Control) Held() bool { return c != nil && c.Received > 0 }

// addControl adds the control group of another runner.
func (m *Merged) addControl(s *Shard) {
	if s.Control == nil {
		return
	}
	own := *s.Control
	control := &Controlled{Control: own}
	if own.Held() {
		control.Moments = momentsOf(s)
	}
	m.Runners[len(m.Runners)-1].Controlled = control
	if m.Control == nil {
		m.Control = &own
		return
	}
	c := m.Control
	c.Away, c.Streams, c.Opened, c.Refused, c.Cut, c.Lost = c.Away || own.Away, c.Streams+own.Streams, c.Opened+own.Opened, c.Refused+own.Refused, c.Cut+own.Cut, c.Lost+own.Lost
	c.ControlCounts.Add(own.ControlCounts)
	if c.Error == "" {
		c.Error = own.Error
	}
	if c.URL != own.URL {
		c.URL = ""
	}
}

func (s *Shard) checkControl() error {
	c := s.Control
	if c == nil {
		return nil
	}
	if len(c.URL)+len(c.Error) > mostText {
		return tooLong(c.URL + c.Error)
	}
	counts := []ControlCounts{c.ControlCounts, {Owed: c.Lost}}
	for _, b := range s.Series {
		if b.Control != nil {
			counts = append(counts, *b.Control)
		}
	}
	for _, n := range counts {
		if max(n.Owed, n.Received, n.Late) > mostCount || max(n.LongestUS, n.ReferenceUS) > mostCount || min(n.LongestUS, n.ReferenceUS) < 0 {
			return errors.New("it holds a control group with a count that cannot be")
		}
	}
	if int64(c.LateMS) > mostLength.Milliseconds() {
		return errors.New("it holds a control group with a limit of lateness that cannot be")
	}
	if numbers := []int{c.Streams, c.Opened, c.Refused, c.Cut, c.LateMS}; slices.Min(numbers) < 0 || slices.Max(numbers) > mostCount {
		return errors.New("it holds a control group with a count that cannot be")
	}
	return nil
}

// A Controlled is the control group of one runner, and the moments that it is to be asked about.
type Controlled struct {
	Control
	Moments []Moment // by time; none where the group was never held
}

// A Moment is a bucket in which the control group was late or said nothing, the runner stalled, or messages were late.
type Moment struct {
	At      time.Time     // it begins
	Longest time.Duration // lateness of the control group
	Silent  bool          // the control group tells nothing of it: it was not held, or its reference was late itself
	Stall   time.Duration // of the runner
	Late    int           // messages of the streams that are soaked
	LateBy  *Packed       // how late; nil where that is not known
	Held    *Late         // those of the streams that are held; nil where all are
}

// OfHeld is the group with the moments of those streams alone that are held: what comes late on a stream that is read
// slowly says nothing of whose delay it was on the others.
func (c *Controlled) OfHeld() *Controlled {
	if c == nil {
		return nil
	}
	out := *c
	out.Moments = slices.Clone(c.Moments)
	for i := range out.Moments {
		if m := &out.Moments[i]; m.Held != nil {
			m.Late, m.LateBy, m.Held = m.Held.Late, m.Held.LateBy, nil
		}
	}
	return &out
}

// tells says that the group brought at least half of what it owed in a bucket, and in a whole one half of what all of its
// streams would: delays that fall between the events of fewer go unseen.
func (c *ControlCounts) tells(streams int, whole bool) bool {
	least := c.Owed
	if whole {
		least = max(least, clamp.Uint64(streams)*uint64(BucketWidth/controlEvery))
	}
	return c.Received > 0 && 2*c.Received >= least
}

// mostMoments bounds what is kept of each of a thousand runners.
const mostMoments = 1 << 12

// momentsOf leaves out the buckets in which all was well.
func momentsOf(s *Shard) (out []Moment) {
	half := s.Control.Limit() / 2
	for i, b := range s.Series {
		m := Moment{At: time.Unix(b.Unix, 0), Stall: time.Duration(b.StallMS) * time.Millisecond, Late: b.Late, Silent: true}
		if c := b.Control; c != nil {
			m.Longest = time.Duration(c.LongestUS) * time.Microsecond
			whole := i > 0 && i < len(s.Series)-1 // else the runner may have begun or ended in the middle of it
			m.Silent = !c.tells(s.Control.Streams, whole) || time.Duration(c.ReferenceUS)*time.Microsecond > half
		}
		if b.Late > 0 {
			m.LateBy, m.Held = b.Lateness, b.Held
		}
		if quiet := s.Control.Resolution(); m.Longest+quiet > half || m.Silent || m.Late > 0 || m.Stall > half {
			out = append(out, m)
		}
		if len(out) == mostMoments {
			break
		}
	}
	return out
}

// controlEvery is the time between two events of a stream of the group.
const controlEvery = time.Second

// Resolution is how long a stall may be that falls between the events of the group.
func (c *Control) Resolution() time.Duration { return controlEvery / time.Duration(max(c.Streams, 1)) }

// Limit is the lateness above which an event counts as late.
func (c *Control) Limit() time.Duration { return time.Duration(c.LateMS) * time.Millisecond }
