package ledger

import (
	"slices"
	"time"
)

// earlyGaps is after how many gaps their median tells the interval well enough to count by it.
const earlyGaps = 7

// pace measures the interval that a service keeps on a stream, whatever the plan says: the time
// between the first and the last noop, divided by the intervals between them. Where numbers tell
// these, they are known; else the median of the first gaps does.
type pace struct {
	started     bool
	first, last Instant
	steps       int64
	early       [earlyGaps]time.Duration // the first gaps, for the clock
	gaps        int
	typical     time.Duration // their median, once there are enough

	span time.Duration // of an earlier stream that told more
	n    int64
}

// opened begins with a new stream, and keeps what an earlier one told if that was more.
func (p *pace) opened() {
	span, n := p.span, p.n
	if of := p.intervals(); of > n {
		span, n = p.last-p.first, of
	}
	*p = pace{span: span, n: n}
}

// start begins to measure with the noop at the instant at.
func (p *pace) start(at Instant) { p.started, p.first, p.last = true, at, at }

// step enters a noop so many intervals after the one before.
func (p *pace) step(at Instant, n int64) { p.last, p.steps = at, p.steps+n }

// gap enters a noop by the clock.
func (p *pace) gap(at Instant) {
	gap := at - p.last
	p.last = at
	if p.gaps < earlyGaps {
		p.early[p.gaps] = gap
		if p.gaps++; p.gaps == earlyGaps {
			p.typical = p.median()
			for _, g := range p.early {
				p.steps += nearest(g, p.typical)
			}
		}
		return
	}
	p.steps += nearest(gap, p.typical)
}

func (p *pace) median() time.Duration {
	gaps := slices.Clone(p.early[:p.gaps])
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
	if p.gaps == 0 || p.typical > 0 {
		return p.steps
	}
	var steps int64
	for _, g := range p.early[:p.gaps] {
		steps += nearest(g, p.median())
	}
	return steps
}

// fewest is from how many intervals on a pace is told.
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
