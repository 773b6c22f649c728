package shard

import (
	"math"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

// minShared is the part of the planned hold in which all runners of a soak must run at the same time.
const minShared = .75

// checkOverlap finds a runner that ran before or after another one: a shard of an earlier run must not replace a missing one. Runners
// that hardly overlap are not one soak: the service never had all of their streams. The end of an unfinished runner is unknown.
func (m *Merged) checkOverlap() {
	var began, ended *Runner // the last to begin, the first to end
	for i := range m.Runners {
		r := &m.Runners[i]
		if r.State != Finished {
			continue
		}
		if began == nil || r.FirstStartUS() > began.FirstStartUS() {
			began = r
		}
		if ended == nil || r.EndedUS < ended.EndedUS {
			ended = r
		}
	}
	if began == nil {
		return
	}
	if began.FirstStartUS() <= ended.EndedUS {
		if m.Plan.Connections > 0 {
			m.checkShared(began)
		}
		return
	}
	m.problem("%s ended at %s, before %s began at %s: they are not of one run, so remove the shard that is not of it; or their clocks differ, so set them and run again",
		ended.String(), format.Time(time.UnixMicro(ended.EndedUS)), began.String(), format.Time(began.Started()))
}

// checkShared compares the time in which all runners ran with the plan. A runner that ended early counts as if it
// had run for the planned time: a service that cuts its streams off fails, by other checks.
func (m *Merged) checkShared(last *Runner) {
	planned := m.Plan.Hold()
	first, shared := last, time.Duration(math.MaxInt64)
	for i := range m.Runners {
		r := &m.Runners[i]
		if r.State != Finished {
			continue
		}
		end := max(r.EndedUS, r.FirstStartUS()+planned.Microseconds())
		if d := time.Duration(end-last.FirstStartUS()) * time.Microsecond; d < shared {
			first, shared = r, d
		}
	}
	if float64(shared) >= minShared*float64(planned) {
		return
	}
	m.problem("%s and %s ran at the same time for only %s of the planned %s, and %g %% are required; start them together, and check their clocks",
		first.String(), last.String(), format.Duration(shared), format.Duration(planned), 100*minShared)
}
