package ledger

import "math/bits"

// A reference is a slow and simple model. It tries every explanation of the arrivals on one stream that the assumptions
// of docs/accounting.md allow. Times are in thousandths of an interval after the headers. The model shares no code with
// the ledger.
type reference struct {
	arrivals []refArrival
	end      int // when the close was requested
	late     int // LATE_MS, at most half an interval
	jitter   int // maximum delay of a noop that counts as on time
	latest   int // maximum time from the headers to the first due time
	early    int // maximum time before its due time at which a noop arrives
}

type refArrival struct{ at, number int } // number 0: a noop without a number

const (
	refInterval  = 1000
	refDrift     = 10  // maximum deviation of the service's interval
	refBurst     = 500 // maximum time in which delayed noops arrive
	refCopy      = 500 // maximum time from a noop to its copy
	refPrecision = 30  // a noop that is due at most this long after an arrival was not delayed beyond that arrival
	refAfterLast = 125 // a noop that is due at most this long after the last arrival was not in transit at the end
	refTolerance = 250 // tolerance for drift in deciding whether a noop is due at the end
)

const (
	refMaxNoops  = 16 // exceeds the number of noops of a short stream
	refMaxEvents = 8  // exceeds the number of copies and delays of an explanation with few faults
)

// ways is a set of explanations. Bit l of ways[d][h] is set if there is an explanation in which d noops arrived twice,
// the stream was delayed h times and l noops were lost.
type ways [refMaxEvents][refMaxEvents]uint32

// add adds the explanations of o with further lost noops, copies and delays.
func (w *ways) add(o *ways, lost, copies, delays int) {
	for d := range refMaxEvents - copies {
		for h := range refMaxEvents - delays {
			w[d+copies][h+delays] |= o[d][h] << lost
		}
	}
}

// explanations contains all explanations of a stream. In open, all noops that may have been in transit at the end count
// as lost.
type explanations struct{ all, open ways }

// explain tries all schedules. The first noop is due at any time up to latest, and later noops follow at an interval
// that differs from the planned one by up to 1%.
func (s *reference) explain() (o explanations) {
	for interval := refInterval - refDrift; interval <= refInterval+refDrift; interval += 2 {
		for _, firstDue := range s.firstDues(interval) {
			s.explainSchedule(firstDue, interval, &o)
		}
	}
	return o
}

// firstDues returns the possible due times of the first noop. For each of them, one of the received noops was exactly
// on time. If all noops arrived in one burst, or none arrived, no noop needs to have been on time.
func (s *reference) firstDues(interval int) (out []int) {
	if n := len(s.arrivals); n == 0 || s.arrivals[n-1].at-s.arrivals[0].at <= refInterval/50 {
		latest := s.latest
		if len(s.arrivals) == 0 {
			latest = refInterval
		}
		for firstDue := 10; firstDue <= latest; firstDue += 10 {
			out = append(out, firstDue)
		}
		return out
	}
	for _, a := range s.arrivals {
		for firstDue := a.at; firstDue > 0; firstDue -= interval {
			if firstDue <= s.latest {
				out = append(out, firstDue)
			}
		}
	}
	return out
}

// explainSchedule finds all ways to assign the arrivals to the slots of one schedule.
func (s *reference) explainSchedule(firstDue, interval int, o *explanations) {
	due := func(slot int) int { return firstDue + (slot-1)*interval } // from 1
	slots := 0
	for due(slots+1) <= s.end {
		slots++
	}
	var current, next [refMaxNoops + 1]ways // the index is the slot of the last arrival, or 0 before any arrival
	current[0][0][0] = 1
	lastAt := -refInterval
	for i, a := range s.arrivals {
		next = [refMaxNoops + 1]ways{}
		for last := range current {
			if current[last] == (ways{}) {
				continue
			}
			for slot := max(last, 1); slot <= min(slots+1, refMaxNoops); slot++ {
				switch {
				case slot == last && s.isPossibleCopy(i):
					next[slot].add(&current[last], 0, 1, 0)
				case slot == last || !s.mayFill(i, last, slot) || a.at < due(slot)-s.early:
				case a.at <= due(slot)+s.jitter:
					next[slot].add(&current[last], slot-last-1, 0, 0)
				case i > 0 && a.at <= s.arrivals[i-1].at+refBurst && s.isPossiblyDelayed(a.at, due(slot)):
					next[slot].add(&current[last], slot-last-1, 0, 0)
				case s.isPossiblyDelayed(a.at, due(slot)):
					next[slot].add(&current[last], slot-last-1, 0, 1)
				}
			}
		}
		current, lastAt = next, a.at
	}
	for last := range current {
		lost, open := 0, 0
		for slot := last + 1; slot <= slots; slot++ {
			switch {
			case due(slot) <= s.end-s.late || due(slot) <= lastAt+refAfterLast:
				lost++
			case due(slot) <= s.end-refTolerance:
				open++
			}
		}
		o.all.add(&current[last], lost, 0, 0)
		o.open.add(&current[last], lost+open, 0, 0)
	}
}

func (s *reference) isPossibleCopy(i int) bool {
	return i > 0 && s.arrivals[i].at-s.arrivals[i-1].at <= refCopy && s.arrivals[i].number == s.arrivals[i-1].number
}

// mayFill reports whether the number of an arrival allows a slot. Each slot before it has at most one number, and the
// first slot has the first number.
func (s *reference) mayFill(i, last, slot int) bool {
	number := s.arrivals[i].number
	switch {
	case number == 0:
		return true
	case i == 0:
		return slot == number
	}
	before := s.arrivals[i-1].number
	return number > before && slot-last >= number-before
}

// isPossiblyDelayed reports whether a noop may have been delayed from its due time until at, because nothing arrived in
// between.
func (s *reference) isPossiblyDelayed(at, due int) bool {
	for _, other := range s.arrivals {
		if other.at >= due-refPrecision && other.at < at-refBurst {
			return false
		}
	}
	return true
}

type count struct{ lost, repeated int }

// counts returns the counts of all explanations with the fewest events (lost noops, repeated noops, delays), and of all
// explanations with one more event. maxLost is the maximum loss without more repeated noops and delays than in the
// simplest explanation.
func (o *explanations) counts() (simplest, next map[count]bool, events, maxLost int) {
	simplest, next = map[count]bool{}, map[count]bool{}
	copies, delays := refMaxEvents, refMaxEvents
	for events = 0; events < 3*refMaxNoops && len(simplest) == 0; events++ {
		for d := range o.all {
			for h, set := range o.all[d] {
				if has(set, events-d-h) {
					simplest[count{events - d - h, d}] = true
					copies, delays = min(copies, d), min(delays, h)
				}
				if has(set, events+1-d-h) {
					next[count{events + 1 - d - h, d}] = true
				}
			}
		}
		if len(simplest) == 0 {
			clear(next)
		}
	}
	for d := range min(copies+1, refMaxEvents) {
		for h := range min(delays+1, refMaxEvents) {
			maxLost = max(maxLost, bits.Len32(o.open[d][h])-1)
		}
	}
	return simplest, next, events - 1, maxLost
}

func has(set uint32, lost int) bool { return lost >= 0 && lost < 32 && set&(1<<lost) != 0 }
