package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

type wireEvent struct {
	at      Instant
	number  uint64 // 0: no number
	corrupt bool
	message bool
}

// A scenario contains the events that a client receives on one stream, and the faults of the server. The faults are
// known, because the scenario is generated.
type scenario struct {
	numbered bool
	opened   Instant
	events   []wireEvent // in the order of arrival
	end      Instant     // time at which the close is requested

	lost       int // noops expected before the end and never delivered: dropped or never sent
	skipped    int // part of lost: slots without a number
	duplicates int
	corrupted  int
	swaps      int
	delays     int // delays longer than half an interval
	// determined reports whether the clock alone can show the faults: they are apart, the noise is small, and the
	// schedule shows the loss of a first noop.
	determined bool
	text       strings.Builder
}

func (s *scenario) String() string {
	return fmt.Sprintf("numbered=%v lost=%d (skipped %d) duplicates=%d corrupted=%d swaps=%d delays=%d determined=%v: %s",
		s.numbered, s.lost, s.skipped, s.duplicates, s.corrupted, s.swaps, s.delays, s.determined, s.text.String())
}

func (s *scenario) describe(format string, args ...any) { fmt.Fprintf(&s.text, format+" ", args...) }

// options limit the faults of a random scenario.
type options struct {
	numbered          bool
	faults            float64 // probability of a fault in a slot
	jitter, drift     float64 // in intervals
	spaced            bool    // at least three clean slots between faults
	headLow, headHigh float64 // range of the time from the headers to the first slot, in intervals
}

// newScenario generates a scenario. Each slot has at most one fault.
func newScenario(r *rand.Rand, c options) *scenario {
	s := &scenario{numbered: c.numbered, opened: time.Duration(1+r.IntN(1000)) * time.Millisecond}
	slotCount := 12 + r.IntN(50)
	length := float64(interval) * (1 + c.drift*(2*r.Float64()-1))
	head := (c.headLow + (c.headHigh-c.headLow)*r.Float64()) * float64(interval)
	jitter := c.jitter * float64(interval)
	due := func(slot int) Instant { // slots count from 1
		return s.opened + Instant(head+float64(slot-1)*length+jitter*(2*r.Float64()-1))
	}
	s.determined = c.spaced && head-jitter > .55*float64(interval)
	var number uint64
	var floor Instant // arrival of the previous event: TCP keeps the order, so no event overtakes a delayed one
	calm := 0
	deliver := func(e wireEvent) {
		e.at = max(e.at, floor)
		floor = e.at
		s.events = append(s.events, e)
	}
	s.describe("head=%.2f length=%.4f", head/float64(interval), length/float64(interval))
	for slot := 1; slot <= slotCount; slot++ {
		at := due(slot)
		num := func() uint64 {
			if !c.numbered {
				return 0
			}
			number++
			return number
		}
		fault := r.Float64() < c.faults && !(c.spaced && calm < 3 && slot > 1)
		if !fault {
			calm++
			deliver(wireEvent{at: at, number: num()})
			continue
		}
		calm = 0
		switch kind := r.IntN(7); {
		case kind == 0: // lost on the way
			num()
			s.lost++
			s.describe("%d:drop", slot)
		case kind == 1: // never sent
			s.lost++
			s.skipped++
			s.describe("%d:skip", slot)
		case kind == 2: // twice, now or somewhat later
			n := num()
			deliver(wireEvent{at: at, number: n})
			copyDelay := Instant(0)
			if r.IntN(2) == 0 {
				copyDelay = Instant(.45 * r.Float64() * float64(interval))
			}
			deliver(wireEvent{at: at + copyDelay, number: n})
			s.duplicates++
			s.describe("%d:twice+%.2f", slot, float64(copyDelay)/float64(interval))
		case kind == 3:
			deliver(wireEvent{at: at, number: num(), corrupt: true})
			s.corrupted++
			s.describe("%d:corrupt", slot)
		case kind == 4 && slot < slotCount && c.numbered: // swapped with the next, a slot apart or at once
			a, b := num(), num()
			first, second := at, due(slot+1)
			if r.IntN(2) == 0 {
				first = second
			}
			deliver(wireEvent{at: first, number: b})
			deliver(wireEvent{at: second, number: a})
			s.swaps++
			s.describe("%d:swap", slot)
			slot++
		case kind == 5 && slot < slotCount-4: // delayed, then all at once
			n := 1 + r.IntN(3)
			delay := (float64(n) + .3*r.Float64()) * float64(interval)
			s.delays++
			s.determined = s.determined && slot > 1 // in the first slot, the schedule is not known yet
			s.describe("%d:delayed %.2f", slot, delay/float64(interval))
			release := at + Instant(delay)
			deliver(wireEvent{at: release, number: num()})
			calm = -1 - n // the next noops arrive in the same burst
		default: // a numbered message without a slot
			if c.numbered {
				deliver(wireEvent{at: at - interval/8, number: num(), message: true})
				s.describe("%d:message", slot)
			}
			deliver(wireEvent{at: at, number: num()})
		}
	}
	// The end is 0.25 to 0.65 of an interval after a slot, so no noop is due.
	last := s.opened + Instant(head+float64(slotCount-1)*length)
	s.end = max(last+Instant((.25+.4*r.Float64())*float64(interval)), floor)
	s.describe("end=%.2f", float64(s.end-last)/float64(interval))
	return s
}

func (s *scenario) play() Record { return s.playAndInspect(func(*Ledger) {}) }

func (s *scenario) playAndInspect(inspect func(*Ledger)) Record {
	l := openLedgerAt(&Config{Interval: interval, LatenessLimit: sec}, 0, s.opened)
	for _, e := range s.events {
		if e.message {
			l.NumberedEvent(e.at, e.number)
			continue
		}
		n := Noop{At: e.at, Number: e.number, Intact: !e.corrupt}
		if e.corrupt {
			n.Data = "x"
		}
		l.Noop(n)
		inspect(l)
	}
	end := s.end + l.UndecidedTime(s.end) // as the scripts do
	l.CloseRequested(end)
	l.Closed(end+time.Millisecond, "server", true, false)
	return l.Record()
}

// A tally contains the counts of a simple model of numbers, which keeps every arrival.
type tally struct{ received, corrupted, duplicated, reordered, lost uint64 }

func countNumbers(events []wireEvent) (t tally) {
	var arrived []uint64
	for _, e := range events {
		switch {
		case slices.Contains(arrived, e.number):
			t.duplicated++
			continue
		case len(arrived) > 0 && e.number < slices.Max(arrived):
			t.reordered++
		}
		arrived = append(arrived, e.number)
		switch {
		case e.message:
		case e.corrupt:
			t.corrupted++
		default:
			t.received++
		}
	}
	if len(arrived) > 0 {
		t.lost = slices.Max(arrived) - uint64(len(arrived))
	}
	return t
}
