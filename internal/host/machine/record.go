package machine

import (
	"fmt"
	"math"
	"time"
)

// A Record holds the counters of a machine during a run. Times are Unix microseconds.
type Record struct {
	Boot       string `json:"boot_id,omitempty"`
	BootedUnix int64  `json:"booted_unix_s,omitempty"`
	Namespace  string `json:"network_namespace,omitempty"` // as /proc/self/ns/net has it
	Cards      bool   `json:"network_cards,omitempty"`     // the namespace has network cards, so it is the machine's own
	Cores      int    `json:"cores,omitempty"`
	FromUS     int64  `json:"from_unix_us"`
	ToUS       int64  `json:"to_unix_us"`

	Counters []Series `json:"counters,omitempty"`
	Notices  []Notice `json:"notices,omitempty"`
	Unknown  string   `json:"unknown,omitempty"` // why nothing is known, in a sentence

	Name string `json:"name,omitempty"` // of a machine that Prometheus watches: its instance
	Node string `json:"node,omitempty"` // and its host name
}

// A Series is one counter over a run.
type Series struct {
	Name  string  `json:"name"`
	Begin float64 `json:"begin"`
	End   float64 `json:"end"`
	Grown float64 `json:"grown,omitempty"` // total increase, also across resets
	// Moved are the times in which it grew, the first of them; none of a counter that always grows. Of Steal they are
	// the times in which more was stolen than may be the reason of a late message.
	Moved []Stretch `json:"moved,omitempty"`
	// Most is the highest share of its limit that was seen of a number that has one.
	Most   float64 `json:"most,omitempty"`
	MostUS int64   `json:"most_unix_us,omitempty"`
}

// A Stretch is a time in which a counter grew, as exact as the samples.
type Stretch struct {
	FromUS int64   `json:"from_unix_us"`
	ToUS   int64   `json:"to_unix_us"`
	By     float64 `json:"by"`
}

// From and To return its bounds.
func (s Stretch) From() time.Time { return time.UnixMicro(s.FromUS) }
func (s Stretch) To() time.Time   { return time.UnixMicro(s.ToUS) }

// A Notice is an event that AWS announced for a machine.
type Notice struct {
	Name string `json:"what"`       // "system-reboot", "spot terminate"
	AtUS int64  `json:"at_unix_us"` // when it takes effect
}

// Spot is the prefix of the Name of a notice that a spot instance will be reclaimed.
const Spot = "spot "

// Series returns a counter of the record, or nil if the machine does not report it.
func (r *Record) Series(name string) *Series {
	for i := range r.Counters {
		if r.Counters[i].Name == name {
			return &r.Counters[i]
		}
	}
	return nil
}

// Bounds of a record.
const (
	mostCounters  = 50
	mostStretches = 200
	mostNotices   = 20
	mostText      = 200
	mostValue     = 1 << 53
)

// Check returns an error for a record that no runner writes. It may come from another machine, and its file may be damaged.
func (r *Record) Check() error {
	if r == nil {
		return nil
	}
	for _, text := range []string{r.Boot, r.Namespace, r.Unknown, r.Name, r.Node} {
		if len(text) > mostText {
			return fmt.Errorf("its machine has a text of %d characters, %.20q…", len(text), text)
		}
	}
	if len(r.Counters) > mostCounters || len(r.Notices) > mostNotices || r.Cores < 0 || r.ToUS < r.FromUS {
		return fmt.Errorf("its machine has %d counters, %d notices and %d cores from %d µs to %d µs, which cannot be",
			len(r.Counters), len(r.Notices), r.Cores, r.FromUS, r.ToUS)
	}
	for _, n := range r.Notices {
		if len(n.Name) > mostText {
			return fmt.Errorf("its machine has a notice of %d characters, %.20q…", len(n.Name), n.Name)
		}
	}
	names := map[string]bool{}
	for _, s := range r.Counters {
		if err := s.check(r); err != nil {
			return err
		}
		if names[s.Name] {
			return fmt.Errorf("its machine has a counter %s twice", s.Name)
		}
		names[s.Name] = true
	}
	return nil
}

func (s *Series) check(r *Record) error {
	if len(s.Name) > mostText || len(s.Moved) > mostStretches {
		return fmt.Errorf("its machine has a counter %.20q that moved %d times, more than is kept", s.Name, len(s.Moved))
	}
	for _, v := range []float64{s.Begin, s.End, s.Grown, s.Most} {
		if math.IsNaN(v) || v < 0 || v > mostValue {
			return fmt.Errorf("its machine has a counter %s of %g, which cannot be", s.Name, v)
		}
	}
	// Of steal only the times are kept in which it was much.
	if c, ok := CounterOf(s.Name); ok && c.timed() && s.Name != Steal && s.Grown > 0 && len(s.Moved) == 0 {
		return fmt.Errorf("its machine has a counter %s that grew by %g and never moved, which cannot be", s.Name, s.Grown)
	}
	for _, m := range s.Moved {
		if m.FromUS < r.FromUS || m.ToUS > r.ToUS || m.ToUS < m.FromUS || m.By < 0 || m.By > mostValue {
			return fmt.Errorf("its machine has a counter %s that moved by %g from %d µs to %d µs, which cannot be", s.Name, m.By, m.FromUS, m.ToUS)
		}
	}
	return nil
}
