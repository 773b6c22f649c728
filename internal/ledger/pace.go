package ledger

import (
	"math"
	"slices"
	"time"
)

// medianGaps is the number of gaps whose median is precise enough to count the intervals of later gaps.
const medianGaps = 7

// pace measures the actual interval of a stream: the time from the first to the last noop, divided by the number of
// intervals between them. The numbers of the noops, or the median of the first gaps, show the number of intervals.
type pace struct {
	first, last Instant
	gauge       *gauge // nil: the noops have numbers, or every gap is about as planned
	steps       uint32 // number of intervals from first to last
	started     bool
	firstLate   bool // the first noop was late
	planned     bool // the median of the first gaps equals the planned interval
}

// A gauge counts the intervals in the gaps between noops without numbers.
type gauge struct {
	first   [medianGaps]time.Duration // the first gaps, until there are enough
	gaps    int8                      // number of elements of first that are set
	typical time.Duration             // median of the first gaps, once there are enough
	excess  time.Duration             // sum of the counted gaps minus their intervals, without jitter
}

type measurement struct {
	span time.Duration
	n    int64
}

func (p *pace) start(at Instant) { p.started, p.first, p.last = true, at, at }

// restart starts the measurement at the second noop, n intervals after the first one, if the first noop was late. It
// reports whether the measurement restarted.
func (p *pace) restart(at Instant, n int64, planned time.Duration) bool {
	if p.firstLate || p.last != p.first || at-p.last >= share(planned, 1-jitter)*time.Duration(n) {
		return false
	}
	p.firstLate, p.first, p.last = true, at, at
	return true
}

// step adds a noop n intervals after the previous one.
func (p *pace) step(at Instant, n int64, planned time.Duration) {
	if p.restart(at, n, planned) {
		return
	}
	p.last = at
	p.addIntervals(n)
}

// addIntervals adds n intervals, up to the maximum of the type, because numbers may leap.
func (p *pace) addIntervals(n int64) { p.steps = uint32(min(int64(p.steps)+n, math.MaxUint32)) } // #nosec G115 -- bounded in this expression

// gap adds a noop without a number.
func (p *pace) gap(at Instant, planned time.Duration) {
	if p.restart(at, 1, planned) {
		return
	}
	gap := at - p.last
	p.last = at
	if p.gauge == nil && p.planned {
		var excess time.Duration
		if p.addIntervals(intervals(gap, planned, &excess)); excess != 0 {
			p.gauge = &gauge{typical: planned, excess: excess}
		}
		return
	}
	if p.gauge == nil {
		p.gauge = new(gauge)
	}
	g := p.gauge
	if g.typical > 0 {
		p.addIntervals(intervals(gap, g.typical, &g.excess))
	} else {
		g.first[g.gaps] = gap
		if g.gaps++; g.gaps < medianGaps {
			return
		}
		steps, excess := g.count(planned)
		p.addIntervals(steps)
		g.excess = excess
		g.typical, g.gaps = g.median(planned), 0
	}
	if p.planned = g.typical == planned; p.planned && g.excess == 0 {
		p.gauge = nil
	}
}

// count returns the number of intervals in the first gaps, by their median, and the excess that remains.
func (g *gauge) count(planned time.Duration) (steps int64, excess time.Duration) {
	typical := g.median(planned)
	for _, gap := range g.first[:g.gaps] {
		steps += intervals(gap, typical, &excess)
	}
	return steps, excess
}

// intervals returns the number of intervals in a gap. The lateness of a noop shortens the next gap, so excess carries
// the lateness over to it. Jitter is not carried over.
func intervals(gap, interval time.Duration, excess *time.Duration) int64 {
	n := nearest(gap+*excess, interval)
	*excess += gap - time.Duration(n)*interval
	if excess.Abs() < interval*2/5 {
		*excess = 0
	}
	return n
}

// median returns the median of the first gaps, or the planned interval if jitter or losses, which leave gaps of whole
// intervals, explain the difference.
func (g *gauge) median(planned time.Duration) time.Duration {
	gaps := slices.Clone(g.first[:g.gaps])
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	var mean time.Duration
	for _, gap := range gaps {
		mean += gap / time.Duration(len(gaps))
	}
	n := nearest(median, planned)
	near := func(d time.Duration, tolerance float64) bool {
		return (d - time.Duration(n)*planned).Abs() <= share(planned, tolerance)
	}
	if n == 1 && near(mean, .05) || n > 1 && near(median, .1) {
		return planned
	}
	return median
}

func nearest(gap, interval time.Duration) int64 {
	if interval <= 0 {
		return 0
	}
	return int64((gap + interval/2) / interval)
}

func (p *pace) intervals(planned time.Duration) int64 {
	if g := p.gauge; g != nil && g.gaps > 0 {
		steps, _ := g.count(planned)
		return steps
	}
	return int64(p.steps)
}

// minIntervals is the minimum number of intervals of a measurement.
const minIntervals = 4

func (p *pace) measured(planned time.Duration) measurement {
	return measurement{p.last - p.first, p.intervals(planned)}
}

// fill writes the interval, and the error that jitter and lateness may cause, into a record. It writes nothing if the
// measurement has fewer than minIntervals intervals.
func (m measurement) fill(r *Record, interval time.Duration) {
	if m.n < minIntervals {
		return
	}
	r.Interval = m.span / time.Duration(m.n)
	r.IntervalError = (share(interval, jitter) + r.MaxLateness) / time.Duration(m.n)
}
