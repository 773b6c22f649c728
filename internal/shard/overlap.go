package shard

import (
	"cmp"
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
	var finished []int // indexes in Runners
	for i := range m.Runners {
		if m.Runners[i].State == Finished {
			finished = append(finished, i)
		}
	}
	if len(finished) == 0 || slices.ContainsFunc(m.groups, func(g group) bool { return g.hasTwoRuns }) {
		return
	}
	start, end := func(i int) int64 { return m.Runners[i].FirstStartUS() }, func(i int) int64 { return m.Runners[i].EndedUS }
	lastStart := slices.MaxFunc(finished, func(a, b int) int { return cmp.Compare(start(a), start(b)) })
	firstEnd := slices.MinFunc(finished, func(a, b int) int { return cmp.Compare(end(a), end(b)) })
	switch {
	case start(lastStart) > end(firstEnd):
		m.problem("%s ended at %s, before %s started at %s; remove the shard of another run, or set the clocks and repeat the run",
			m.nameAt(firstEnd), format.Time(time.UnixMicro(end(firstEnd))), m.nameAt(lastStart), format.Time(m.Runners[lastStart].Started()))
	case m.Plan.Connections > 0:
		m.checkCommonTime(finished, lastStart)
	}
}

// checkCommonTime reports two of the finished runners that ran at the same time for less than minCommonTime of the
// planned hold. lastStart is the index of the runner that started last. A runner that ended early counts with the
// planned time, because other checks report early ends.
func (m *Merged) checkCommonTime(finished []int, lastStart int) {
	planned := m.Plan.Hold()
	end := func(i int) int64 {
		return max(m.Runners[i].EndedUS, m.Runners[i].FirstStartUS()+planned.Microseconds())
	}
	firstEnd := slices.MinFunc(finished, func(a, b int) int { return cmp.Compare(end(a), end(b)) })
	common := time.Duration(end(firstEnd)-m.Runners[lastStart].FirstStartUS()) * time.Microsecond
	if float64(common) < minCommonTime*float64(planned) {
		m.problem("%s and %s ran at the same time for only %s of the planned %s (minimum: %g %%); start them together, and check their clocks",
			m.nameAt(firstEnd), m.nameAt(lastStart), format.Duration(common), format.Duration(planned), 100*minCommonTime)
	}
}
