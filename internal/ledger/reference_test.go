package ledger

import "math/bits"

// The reference is slow and simple: it tries every explanation of the arrivals on one stream that
// the assumptions of docs/accounting.md allow. Times are in thousandths of an interval after the
// headers. It shares no code with the ledger.
type reference struct {
	arrivals []refArrival
	end      int // when the close was requested
	late     int // LATE_MS, at most half an interval
	jitter   int // maximum delay of a noop that is not held back
	latest   int // maximum time from the headers to the first due time
	early    int // precision of the times by which a noop can be too early
}

type refArrival struct{ at, number int } // number 0: none

const (
	refInterval = 1000
	refDrift    = 10  // maximum deviation of the service's interval
	refBurst    = 500 // maximum time in which delayed noops arrive
	refDouble   = 500 // maximum time from a noop to its copy
	refInStep   = 30  // a noop that is due this close to an arrival is not delayed beyond it
	refFlow     = 125 // a noop that is due this soon after the last one was not in flight
	refNearly   = 250 // tolerance for drift in deciding whether a noop is due at the end
)

const (
	refMost   = 16 // exceeds the noops of a short stream
	refEvents = 8  // exceeds the copies and delays of an explanation with few faults
)

// ways are explanations: bit l of ways[d][h] is set if there is one in which d noops arrived twice, the
// stream was delayed h times and l noops are lost.
type ways [refEvents][refEvents]uint32

func (w *ways) add(o *ways, lost, doubled, held int) {
	for d := range refEvents - doubled {
		for h := range refEvents - held {
			w[d+doubled][h+held] |= o[d][h] << lost
		}
	}
}

// A view has all explanations, and those in which all noops that may have been in flight at the end are
// lost.
type view struct{ all, open ways }

// explain tries all schedules: the first noop is due at any time up to latest, and later ones an
// interval apart that is up to 1 % off.
func (s *reference) explain() (o view) {
	for interval := refInterval - refDrift; interval <= refInterval+refDrift; interval += 2 {
		for _, phase := range s.phases(interval) {
			s.explainSchedule(phase, interval, &o)
		}
	}
	return o
}

// phases are the possible due times of the first noop: those by which one of the received noops was on
// time. If all arrived in one burst, or none arrived, no noop needs to have been on time.
func (s *reference) phases(interval int) (out []int) {
	if n := len(s.arrivals); n == 0 || s.arrivals[n-1].at-s.arrivals[0].at <= refInterval/50 {
		latest := s.latest
		if len(s.arrivals) == 0 {
			latest = refInterval
		}
		for phase := 10; phase <= latest; phase += 10 {
			out = append(out, phase)
		}
		return out
	}
	for _, a := range s.arrivals {
		for phase := a.at; phase > 0; phase -= interval {
			if phase <= s.latest {
				out = append(out, phase)
			}
		}
	}
	return out
}

// explainSchedule finds all ways to assign the arrivals to the slots of one schedule.
func (s *reference) explainSchedule(phase, interval int, o *view) {
	due := func(slot int) int { return phase + (slot-1)*interval } // from 1
	slots := 0
	for due(slots+1) <= s.end {
		slots++
	}
	var by, next [refMost + 1]ways // by the slot of the last arrival, 0 for none
	by[0][0][0] = 1
	lastAt := -refInterval
	for i, a := range s.arrivals {
		next = [refMost + 1]ways{}
		for last := range by {
			if by[last] == (ways{}) {
				continue
			}
			for slot := max(last, 1); slot <= min(slots+1, refMost); slot++ {
				switch {
				case slot == last && s.mayBeCopy(i):
					next[slot].add(&by[last], 0, 1, 0)
				case slot == last || !s.mayBe(i, last, slot) || a.at < due(slot)-s.early:
				case a.at <= due(slot)+s.jitter:
					next[slot].add(&by[last], slot-last-1, 0, 0)
				case i > 0 && a.at <= s.arrivals[i-1].at+refBurst && s.mayBeDelayed(a.at, due(slot)):
					next[slot].add(&by[last], slot-last-1, 0, 0)
				case s.mayBeDelayed(a.at, due(slot)):
					next[slot].add(&by[last], slot-last-1, 0, 1)
				}
			}
		}
		by, lastAt = next, a.at
	}
	for last := range by {
		lost, open := 0, 0
		for slot := last + 1; slot <= slots; slot++ {
			switch {
			case due(slot) <= s.end-s.late || due(slot) <= lastAt+refFlow:
				lost++
			case due(slot) <= s.end-refNearly:
				open++
			}
		}
		o.all.add(&by[last], lost, 0, 0)
		o.open.add(&by[last], lost+open, 0, 0)
	}
}

func (s *reference) mayBeCopy(i int) bool {
	return i > 0 && s.arrivals[i].at-s.arrivals[i-1].at <= refDouble && s.arrivals[i].number == s.arrivals[i-1].number
}

// mayBe reports whether the number of an arrival allows its slot: those between used one each at most, and the first
// slot has the first.
func (s *reference) mayBe(i, last, slot int) bool {
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

// mayBeDelayed reports whether a noop that was due then may have been delayed until at: nothing else arrived from its
// due time until then.
func (s *reference) mayBeDelayed(at, due int) bool {
	for _, other := range s.arrivals {
		if other.at >= due-refInStep && other.at < at-refBurst {
			return false
		}
	}
	return true
}

// A count is the number of lost and repeated noops in an explanation.
type count struct{ lost, doubled int }

// counts returns the counts of all explanations with the fewest events (lost noops, repeated noops, delays),
// those with one more event, and the maximum loss without more repeated noops and delays than in the
// simplest explanation.
func (o *view) counts() (simplest, next map[count]bool, events, most int) {
	simplest, next = map[count]bool{}, map[count]bool{}
	doubled, held := refEvents, refEvents
	for events = 0; events < 3*refMost && len(simplest) == 0; events++ {
		for d := range o.all {
			for h, set := range o.all[d] {
				if has(set, events-d-h) {
					simplest[count{events - d - h, d}] = true
					doubled, held = min(doubled, d), min(held, h)
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
	for d := range min(doubled+1, refEvents) {
		for h := range min(held+1, refEvents) {
			most = max(most, bits.Len32(o.open[d][h])-1)
		}
	}
	return simplest, next, events - 1, most
}

func has(set uint32, lost int) bool { return lost >= 0 && lost < 32 && set&(1<<lost) != 0 }
