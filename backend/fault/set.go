package fault

import "time"

// Fired is one strike of a fault.
type Fired struct {
	ID     string `json:"id"`
	Number uint64 `json:"number,omitempty"` // of the noop; none at a connect
	At     int64  `json:"at_unix_us"`
}

// Armed is a fault with what has become of it.
type Armed struct {
	Fault
	left  int
	bound string // the id it struck first, where the fault is for one id
	fired []Fired
}

// Set is the faults of a backend. The zero value is empty. It is not safe for
// concurrent use: it belongs to the scheduler.
type Set struct {
	armed []*Armed
	live  int // armed faults with strikes left
}

// Add arms faults. At most maxFaults stay listed: spent ones make room.
func (s *Set) Add(faults ...Fault) {
	for _, f := range faults {
		if len(s.armed) >= 4*maxFaults {
			s.dropSpent()
		}
		s.armed = append(s.armed, &Armed{Fault: f, left: f.Count})
		s.live++
	}
}

func (s *Set) dropSpent() {
	kept := s.armed[:0]
	for _, a := range s.armed {
		if a.left > 0 {
			kept = append(kept, a)
		}
	}
	clear(s.armed[len(kept):])
	s.armed = kept
}

// Clear disarms and forgets everything.
func (s *Set) Clear() { *s = Set{} }

// Empty reports whether no fault can strike any more.
func (s *Set) Empty() bool { return s.live == 0 }

// AtNoop returns the fault that strikes at that noop of that id, and books it;
// nil if none does. The earliest added wins.
func (s *Set) AtNoop(id string, number uint64, now int64) *Fault {
	for _, a := range s.armed {
		if a.left > 0 && !a.AtConnect() && number >= a.Noop && a.meant(id) {
			return s.strike(a, id, number, now)
		}
	}
	return nil
}

// AtConnect is AtNoop for a connect of that id.
func (s *Set) AtConnect(id string, now int64) *Fault {
	for _, a := range s.armed {
		if a.left > 0 && a.AtConnect() && a.meant(id) {
			return s.strike(a, id, 0, now)
		}
	}
	return nil
}

// meant reports whether the fault is for that id. Without an id, a fault that
// counts noops stays with the first id it struck; one that counts connections
// strikes whoever comes.
func (a *Armed) meant(id string) bool {
	switch {
	case a.ID != "":
		return a.ID == id
	case a.bound != "" && !a.perConnection():
		return a.bound == id
	}
	return true
}

func (s *Set) strike(a *Armed, id string, number uint64, now int64) *Fault {
	a.bound = id
	a.fired = append(a.fired, Fired{ID: id, Number: number, At: now})
	if a.left--; a.left == 0 {
		s.live--
	}
	return &a.Fault
}

// Status is a fault as GET /fault shows it.
type Status struct {
	Fault     string  `json:"fault"`
	Kind      Kind    `json:"kind"`
	ID        string  `json:"id,omitempty"`
	Noop      uint64  `json:"noop,omitempty"`
	Count     int     `json:"count"`
	Remaining int     `json:"remaining"`
	WaitS     float64 `json:"wait_s,omitempty"`
	Fired     []Fired `json:"fired"`
}

// Status copies what was armed and what fired, in the order it was added.
func (s *Set) Status() []Status {
	list := make([]Status, 0, len(s.armed))
	for _, a := range s.armed {
		list = append(list, Status{
			Fault: a.String(), Kind: a.Kind, ID: a.ID, Noop: a.Noop, Count: a.Count,
			Remaining: a.left, WaitS: float64(a.Wait) / float64(time.Second),
			Fired: append([]Fired{}, a.fired...),
		})
	}
	return list
}
