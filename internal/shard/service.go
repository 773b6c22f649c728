package shard

import "time"

// A Service is what was soaked, as far as a verdict has to know of its description.
type Service struct {
	Name     string  `json:"name"`
	SHA256   string  `json:"sha256"`                      // of the description
	Counts   Counts  `json:"counts"`                      // what is counted
	AnyOrder bool    `json:"any_order,omitempty"`         // the order of messages is not promised
	Unmarked bool    `json:"unmarked,omitempty"`          // messages do not say of which run they are
	Every    float64 `json:"heartbeat_every_s,omitempty"` // heartbeats are so many seconds apart at most; 0: not said
	// LifetimeS is how long a stream lives at least where the service ends streams on purpose, in seconds.
	LifetimeS float64 `json:"lifetime_s,omitempty"`
	// Resume is by what a client says where it was: "Last-Event-ID", "the parameter since" or "none". Gap is how the service says that messages are missing, in words; "" where the description does not say.
	Resume string `json:"resume,omitempty"`
	Gap    string `json:"gap,omitempty"`
}

// Counts says by what messages are counted.
type Counts string

// What is counted: messages by the clock, and by number where they have one; messages by the numbers in them alone; or
// nothing at all.
const (
	CountsInterval Counts = "interval"
	CountsNumbers  Counts = "numbers"
	CountsNothing  Counts = "nothing"
)

// Heartbeat is how far apart heartbeats are at most, 0 where the description does not say.
func (s *Service) Heartbeat() time.Duration { return time.Duration(s.Every * float64(time.Second)) }

// checkServices compares the descriptions that the runners were given.
func (m *Merged) checkServices(parts []part) {
	of := func(s *Service) (described Service) {
		if s != nil {
			described = *s
		}
		return described
	}
	for i := range parts {
		if i == 0 {
			m.Service = parts[0].service
		}
		if of(parts[i].service) != of(m.Service) {
			m.problem("%s had another description of the service than %s: what they counted cannot be added up", m.Runners[i].String(), m.Runners[0].String())
		}
		if p := &parts[i].plan; p.Published() && of(parts[i].service).Counts != CountsNumbers {
			m.problem("%s did not count messages by their numbers, and what was published has some", m.Runners[i].String())
		}
	}
}
