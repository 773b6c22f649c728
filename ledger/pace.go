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
	started     bool
	first, last Instant
	steps       int64
	early       []time.Duration // the first gaps, for the clock, until there are enough
	typical     time.Duration   // their median, from then on

	span time.Duration // of an earlier stream with more intervals
	n    int64
}

// opened starts a new measurement, and keeps the one of an earlier stream if that had more intervals.
func (p *pace) opened() {
	span, n := p.span, p.n
	if of := p.intervals(); of > n {
		span, n = p.last-p.first, of
	}
	*p = pace{span: span, n: n}
}

// start begins to measure with the noop at the instant at.
func (p *pace) start(at Instant) { p.started, p.first, p.last = true, at, at }

// step adds a noop that came n intervals after the one before.
func (p *pace) step(at Instant, n int64) { p.last, p.steps = at, p.steps+n }

// gap adds a noop without a number.
func (p *pace) gap(at Instant) {
	gap := at - p.last
	p.last = at
	if p.typical > 0 {
		p.steps += nearest(gap, p.typical)
		return
	}
	p.early = append(p.early, gap)
	if len(p.early) == earlyGaps {
		p.steps, p.typical = p.told(), p.median()
		p.early = nil
	}
}

// told is how many intervals the first gaps are, by their median.
func (p *pace) told() (steps int64) {
	for _, g := range p.early {
		steps += nearest(g, p.median())
	}
	return steps
}

func (p *pace) median() time.Duration {
	gaps := slices.Clone(p.early)
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

func nearest(gap, interval time.Duration) int64 {
	if interval <= 0 {
		return 0
	}
	return int64((gap + interval/2) / interval)
}

// intervals is how many lie between the first noop and the last.
func (p *pace) intervals() int64 {
	if len(p.early) > 0 {
		return p.told()
	}
	return p.steps
}

// fewest is the number of intervals that a measurement needs.
const fewest = 4

// fill writes the interval into a record, and how far it may be off: by the jitter at both ends,
// and by what was late.
func (p *pace) fill(r *Record, interval time.Duration) {
	span, n := p.last-p.first, p.intervals()
	if n < p.n {
		span, n = p.span, p.n
	}
	if n < fewest {
		return
	}
	r.Interval = span / time.Duration(n)
	r.IntervalError = (share(interval, jitter) + r.MaxLateness) / time.Duration(n)
}
