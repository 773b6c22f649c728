package shard

import (
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

// minCommonTime is the minimum share of the planned hold during which all runners of a soak must run at the same time.
const minCommonTime = .75

// checkOverlap reports a runner that ended before another started, because a shard of an earlier run must not replace a
// missing one. It also reports runners that hardly overlap, because the service then had all streams for too short a
// time.
func (m *Merged) checkOverlap() {
	lastStart, firstEnd := -1, -1 // indexes in Runners
	for i := range m.Runners {
		r := &m.Runners[i]
		if r.State != Finished {
			continue
		}
		if lastStart < 0 || r.FirstStartUS() > m.Runners[lastStart].FirstStartUS() {
			lastStart = i
		}
		if firstEnd < 0 || r.EndedUS < m.Runners[firstEnd].EndedUS {
			firstEnd = i
		}
	}
	if lastStart < 0 || slices.ContainsFunc(m.groups, func(g group) bool { return g.hasTwoRuns }) {
		return
	}
	started, endedUS := m.Runners[lastStart].FirstStartUS(), m.Runners[firstEnd].EndedUS
	if started <= endedUS {
		if m.Plan.Connections > 0 {
			m.checkCommonTime(lastStart)
		}
		return
	}
	m.problem("%s ended at %s, before %s started at %s; remove the shard of another run, or set the clocks and repeat the run",
		m.nameAt(firstEnd), format.Time(time.UnixMicro(endedUS)), m.nameAt(lastStart), format.Time(m.Runners[lastStart].Started()))
}

// checkCommonTime reports two runners that ran at the same time for less than minCommonTime of the planned hold.
// lastStart is the index of the runner that started last. A runner that ended early counts with the planned time, because
// other checks report early ends.
func (m *Merged) checkCommonTime(lastStart int) {
	planned, started := m.Plan.Hold(), m.Runners[lastStart].FirstStartUS()
	firstEnd, common := lastStart, time.Duration(math.MaxInt64)
	for i := range m.Runners {
		r := &m.Runners[i]
		if r.State != Finished {
			continue
		}
		end := max(r.EndedUS, r.FirstStartUS()+planned.Microseconds())
		if d := time.Duration(end-started) * time.Microsecond; d < common {
			firstEnd, common = i, d
		}
	}
	if float64(common) >= minCommonTime*float64(planned) {
		return
	}
	m.problem("%s and %s ran at the same time for only %s of the planned %s (minimum: %g %%); start them together, and check their clocks",
		m.nameAt(firstEnd), m.nameAt(lastStart), format.Duration(common), format.Duration(planned), 100*minCommonTime)
}
