package ledger

import (
	"slices"
	"time"
)

// earlyGaps is the number of gaps whose median is exact enough to count intervals with.
const earlyGaps = 7

// pace measures the interval that a service keeps on a stream, whatever the plan says: the time
// between the first and the last noop, divided by the number of intervals between them. Numbers tell how
// many these are; without numbers the median of the first gaps does.
type pace struct {
	first, last Instant
	steps       int64
	early       *[earlyGaps]time.Duration // the first gaps, for the clock, until there are enough; nil: there are
	typical     time.Duration             // their median, from then on
	rest        time.Duration             // what the gaps counted so far are longer than their intervals
	gaps        int8                      // so many of early
	started     bool
	late        bool // the first noop was
}

// measured is a time, and the number of intervals in it.
type measured struct {
	span time.Duration
	n    int64
}

// start begins to measure with the noop at the instant at.
func (p *pace) start(at Instant) { p.started, p.first, p.last = true, at, at }

// step adds a noop that came n intervals after the one before. A first noop that was held up tells
// nothing of the pace: the measurement starts with the second then.
func (p *pace) step(at Instant, n int64, planned time.Duration) {
	if p.steps == 0 && !p.late && at-p.last < share(planned, 1-jitter)*time.Duration(n) {
		p.late, p.first, p.last = true, at, at
		return
	}
	p.last, p.steps = at, p.steps+n
}

// gap adds a noop without a number.
func (p *pace) gap(at Instant, planned time.Duration) {
	gap := at - p.last
	p.last = at
	if p.typical > 0 {
		p.steps += intervals(gap, p.typical, &p.rest)
		return
	}
	if p.early == nil {
		p.early = new([earlyGaps]time.Duration)
	}
	p.early[p.gaps] = gap
	if p.gaps++; p.gaps == earlyGaps {
		p.steps, p.rest = p.told(planned)
		p.typical, p.early, p.gaps = p.median(planned), nil, 0
	}
}

// told is how many intervals the first gaps are, by their median.
func (p *pace) told(planned time.Duration) (steps int64, rest time.Duration) {
	typical := p.median(planned)
	for _, g := range p.early[:p.gaps] {
		steps += intervals(g, typical, &rest)
	}
	return steps, rest
}

// intervals is how many intervals a gap is. What a noop is late belongs to the next gap, which is so
// much shorter; what jitter makes of it does not.
func intervals(gap, interval time.Duration, rest *time.Duration) int64 {
	n := nearest(gap+*rest, interval)
	*rest += gap - time.Duration(n)*interval
	if rest.Abs() < interval*2/5 {
		*rest = 0
	}
	return n
}

// median is that of the first gaps, or the planned interval where jitter makes a median of it, or losses
// do, which leave gaps of whole intervals.
func (p *pace) median(planned time.Duration) time.Duration {
	gaps := slices.Clone(p.early[:p.gaps])
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	var mean time.Duration
	for _, g := range gaps {
		mean += g / time.Duration(len(gaps))
	}
	n := nearest(median, planned)
	near := func(d time.Duration, within float64) bool {
		return (d - time.Duration(n)*planned).Abs() <= share(planned, within)
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

// intervals is how many lie between the first noop and the last.
func (p *pace) intervals(planned time.Duration) int64 {
	if p.gaps > 0 {
		steps, _ := p.told(planned)
		return steps
	}
	return p.steps
}

// fewest is the number of intervals that a measurement needs.
const fewest = 4

// measured is what is between the first noop and the last.
func (p *pace) measured(planned time.Duration) measured {
	return measured{p.last - p.first, p.intervals(planned)}
}

// fill writes the interval into a record, and how far it may be off: by the jitter at both ends,
// and by what was late.
func (m measured) fill(r *Record, interval time.Duration) {
	if m.n < fewest {
		return
	}
	r.Interval = m.span / time.Duration(m.n)
	r.IntervalError = (share(interval, jitter) + r.MaxLateness) / time.Duration(m.n)
}
