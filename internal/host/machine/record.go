package machine

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// A Record holds the counters of a machine during a run. Times are Unix microseconds, except BootedUnix (seconds).
type Record struct {
	Boot       string `json:"boot_id,omitempty"`
	BootedUnix int64  `json:"booted_unix_s,omitempty"`
	Namespace  string `json:"network_namespace,omitempty"` // target of /proc/self/ns/net
	Cards      bool   `json:"network_cards,omitempty"`     // the namespace has network cards, so it is not a container's
	Cores      int    `json:"cores,omitempty"`
	FromUS     int64  `json:"from_unix_us"` // of the first reading
	ToUS       int64  `json:"to_unix_us"`   // of the last reading

	Counters []Series `json:"counters,omitempty"`
	Notices  []Notice `json:"notices,omitempty"`
	Unknown  string   `json:"unknown,omitempty"` // sentence with the reason why there are no counters

	Name string `json:"name,omitempty"` // label instance, if Prometheus monitors the machine
	Node string `json:"node,omitempty"` // host name of that machine
}

// A Series has the changes of one counter during a run.
type Series struct {
	Name     string  `json:"name"`
	Begin    float64 `json:"begin"`              // first value
	End      float64 `json:"end"`                // last value
	Increase float64 `json:"increase,omitempty"` // total of all increases; a reset does not reduce it
	// Stretches lists the times of increases. It is empty for gauges, for informational counters and for Retrans. For
	// Steal it lists only increases that may explain a late message.
	Stretches []Stretch `json:"stretches,omitempty"`
	// MaxShare is the maximum of a gauge as a share of its limit, and MaxShareUS its time.
	MaxShare   float64 `json:"max_share,omitempty"`
	MaxShareUS int64   `json:"max_share_unix_us,omitempty"`
}

// A Stretch is a period in which a counter increased, with the resolution of the samples.
type Stretch struct {
	FromUS   int64   `json:"from_unix_us"`
	ToUS     int64   `json:"to_unix_us"`
	Increase float64 `json:"by"`
}

// From and To return the bounds of the period.
func (s Stretch) From() time.Time { return time.UnixMicro(s.FromUS) }
func (s Stretch) To() time.Time   { return time.UnixMicro(s.ToUS) }

// A Notice is an announcement of AWS about a machine.
type Notice struct {
	Name string `json:"name"`       // "system-reboot", "spot terminate"
	AtUS int64  `json:"at_unix_us"` // when it takes effect
}

// Spot is the prefix of the names of notices that announce the end of a spot instance.
const Spot = "spot "

// IsRunner reports whether the machine runs runners, by its name in Prometheus (infra/prometheus/runners-aws.yml).
func (r *Record) IsRunner() bool { return strings.HasPrefix(r.Name, "runner-") }

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
	maxCounters  = 50
	maxStretches = 200
	maxNotices   = 20
	maxText      = 200
	maxValue     = 1 << 53
)

// Check returns an error for a record that no runner could have written, such as a damaged or hostile one. r may be
// nil.
func (r *Record) Check() error {
	if r == nil {
		return nil
	}
	for _, text := range []string{r.Boot, r.Namespace, r.Unknown, r.Name, r.Node} {
		if len(text) > maxText {
			return fmt.Errorf("texts of the machine must have at most %d bytes, got %d, %.20q…", maxText, len(text), text)
		}
	}
	if len(r.Counters) > maxCounters || len(r.Notices) > maxNotices || r.Cores < 0 || r.ToUS < r.FromUS {
		return fmt.Errorf("impossible record of the machine: counters %d, notices %d, cores %d, from %d µs to %d µs",
			len(r.Counters), len(r.Notices), r.Cores, r.FromUS, r.ToUS)
	}
	for _, n := range r.Notices {
		if len(n.Name) > maxText {
			return fmt.Errorf("notices of the machine must have at most %d bytes, got %d, %.20q…", maxText, len(n.Name), n.Name)
		}
	}
	names := map[string]bool{}
	for _, s := range r.Counters {
		if err := s.check(r); err != nil {
			return err
		}
		if names[s.Name] {
			return fmt.Errorf("duplicate counter %s of the machine", s.Name)
		}
		names[s.Name] = true
	}
	return nil
}

func (s *Series) check(r *Record) error {
	if len(s.Name) > maxText || len(s.Stretches) > maxStretches {
		return fmt.Errorf("counter %.20q of the machine must have a name of at most %d bytes, got %d, and at most %d increases, got %d",
			s.Name, maxText, len(s.Name), maxStretches, len(s.Stretches))
	}
	for _, v := range []float64{s.Begin, s.End, s.Increase, s.MaxShare} {
		if math.IsNaN(v) || v < 0 || v > maxValue {
			return fmt.Errorf("impossible counter %s of the machine: %g", s.Name, v)
		}
	}
	// Steal has only the times of large increases.
	if c, ok := CounterOf(s.Name); ok && c.hasTimes() && s.Name != Steal && s.Increase > 0 && len(s.Stretches) == 0 {
		return fmt.Errorf("impossible counter %s of the machine: it grew by %g without a time", s.Name, s.Increase)
	}
	for _, m := range s.Stretches {
		if m.FromUS < r.FromUS || m.ToUS > r.ToUS || m.ToUS < m.FromUS || m.Increase < 0 || m.Increase > maxValue {
			return fmt.Errorf("impossible counter %s of the machine: it grew by %g from %d µs to %d µs", s.Name, m.Increase, m.FromUS, m.ToUS)
		}
	}
	return nil
}
