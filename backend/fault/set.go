package fault

import "slices"

// An Effect is the record of one noop or connect to which a fault was applied.
type Effect struct {
	ID     string `json:"id"`
	Number uint64 `json:"number,omitempty"` // number of the noop; 0 at a connect
	At     int64  `json:"at_unix_us"`
}

// An ArmedFault is a fault with its effects so far, in the format of GET /fault.
type ArmedFault struct {
	Text string `json:"fault"` // in the grammar
	Fault
	Remaining int      `json:"remaining"`
	WaitS     float64  `json:"wait_s,omitempty"` // Wait in seconds
	Effects   []Effect `json:"fired"`
	lastID    string   // last affected id; "": none
}

// A Set holds the faults of a backend. The zero value is empty. A Set is not safe for concurrent use.
type Set struct {
	armed       []*ArmedFault
	activeCount int // number of armed faults with remaining effects
}

// Add arms faults. If the set already has 256 or more, Add first removes the faults without remaining effects.
func (s *Set) Add(faults ...Fault) {
	for _, f := range faults {
		if len(s.armed) >= 4*maxFaults {
			s.armed = slices.DeleteFunc(s.armed, func(a *ArmedFault) bool { return a.Remaining == 0 })
		}
		s.armed = append(s.armed, &ArmedFault{Text: f.String(), Fault: f, Remaining: f.Count, WaitS: f.Wait.Seconds(), Effects: []Effect{}})
		s.activeCount++
	}
}

// Clear removes all faults.
func (s *Set) Clear() { *s = Set{} }

// Empty reports whether no fault has remaining effects.
func (s *Set) Empty() bool { return s.activeCount == 0 }

// AtNoop returns the fault for a noop of an id and records the effect, or returns nil. Earlier faults take precedence.
// now is in microseconds since 1970.
func (s *Set) AtNoop(id string, number uint64, now int64) *Fault {
	for _, a := range s.armed {
		if a.Remaining > 0 && !a.AtConnect() && number >= a.Noop && a.matches(id) {
			return s.record(a, id, number, now)
		}
	}
	return nil
}

// AtConnect returns the fault for a connect of an id, like AtNoop for a noop.
func (s *Set) AtConnect(id string, now int64) *Fault {
	for _, a := range s.armed {
		if a.Remaining > 0 && a.AtConnect() && a.matches(id) {
			return s.record(a, id, 0, now)
		}
	}
	return nil
}

// matches reports whether the fault applies to an id. A fault without an id applies to all ids if it counts
// connections. If it counts noops, it applies only to the first id that it affects.
func (a *ArmedFault) matches(id string) bool {
	switch {
	case a.ID != "":
		return a.ID == id
	case a.lastID != "" && !kinds[a.Kind].perConnection:
		return a.lastID == id
	}
	return true
}

func (s *Set) record(a *ArmedFault, id string, number uint64, now int64) *Fault {
	a.lastID = id
	a.Effects = append(a.Effects, Effect{ID: id, Number: number, At: now})
	if a.Remaining--; a.Remaining == 0 {
		s.activeCount--
	}
	return &a.Fault
}

// Status returns copies of all faults in the order of Add.
func (s *Set) Status() []ArmedFault {
	list := make([]ArmedFault, len(s.armed))
	for i, a := range s.armed {
		list[i] = *a
		list[i].Effects = slices.Clone(a.Effects)
	}
	return list
}
