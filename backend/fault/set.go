package fault

import "slices"

// A Strike is one effect of a fault.
type Strike struct {
	ID     string `json:"id"`
	Number uint64 `json:"number,omitempty"` // of the noop; none at a connect
	At     int64  `json:"at_unix_us"`
}

// An ArmedFault is a fault with its effects so far, as GET /fault shows it.
type ArmedFault struct {
	Text string `json:"fault"` // in the grammar
	Fault
	Remaining int      `json:"remaining"`
	WaitS     float64  `json:"wait_s,omitempty"`
	Fired     []Strike `json:"fired"`
	bound     string   // the first affected id, if the fault is for one id
}

// A Set has the faults of a backend. The zero value is empty. It is not safe for concurrent use: it belongs to the
// scheduler.
type Set struct {
	armed []*ArmedFault
	live  int // armed faults with strikes left
}

// Add arms faults. At most maxFaults stay listed: spent ones make room.
func (s *Set) Add(faults ...Fault) {
	for _, f := range faults {
		if len(s.armed) >= 4*maxFaults {
			s.dropSpent()
		}
		s.armed = append(s.armed, &ArmedFault{Text: f.String(), Fault: f, Remaining: f.Count, WaitS: f.Wait.Seconds(), Fired: []Strike{}})
		s.live++
	}
}

func (s *Set) dropSpent() {
	s.armed = slices.DeleteFunc(s.armed, func(a *ArmedFault) bool { return a.Remaining == 0 })
}

// Clear disarms and forgets everything.
func (s *Set) Clear() { *s = Set{} }

// Empty reports whether no fault can strike.
func (s *Set) Empty() bool { return s.live == 0 }

// AtNoop returns the fault that strikes at that noop of that id, and counts it;
// nil if none does. The earliest added wins.
func (s *Set) AtNoop(id string, number uint64, now int64) *Fault {
	for _, a := range s.armed {
		if a.Remaining > 0 && !a.AtConnect() && number >= a.Noop && a.matches(id) {
			return s.strike(a, id, number, now)
		}
	}
	return nil
}

// AtConnect returns the fault for a connect of that id, as AtNoop does for a noop.
func (s *Set) AtConnect(id string, now int64) *Fault {
	for _, a := range s.armed {
		if a.Remaining > 0 && a.AtConnect() && a.matches(id) {
			return s.strike(a, id, 0, now)
		}
	}
	return nil
}

// matches reports whether the fault is for that id. Without an id, a fault that counts noops stays with the first id it
// hit; one that counts connections hits every client.
func (a *ArmedFault) matches(id string) bool {
	switch {
	case a.ID != "":
		return a.ID == id
	case a.bound != "" && !kinds[a.Kind].perConnection:
		return a.bound == id
	}
	return true
}

func (s *Set) strike(a *ArmedFault, id string, number uint64, now int64) *Fault {
	a.bound = id
	a.Fired = append(a.Fired, Strike{ID: id, Number: number, At: now})
	if a.Remaining--; a.Remaining == 0 {
		s.live--
	}
	return &a.Fault
}

// Status returns the armed and the fired faults, in the order in which they were added.
func (s *Set) Status() []ArmedFault {
	list := make([]ArmedFault, len(s.armed))
	for i, a := range s.armed {
		list[i] = *a
		list[i].Fired = slices.Clone(a.Fired)
	}
	return list
}
