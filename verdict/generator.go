package verdict

import (
	"fmt"
	"time"
)

// When the generator counts as starved: its threads waited for a core for more than this share
// of the run's time, and longer than they computed; or it once stood still for half of LATE_MS.
const starvedShare = 0.05

func (j *judge) generator() {
	waited := j.generatorTimes()
	j.v.Generator.Starved = waited || j.stoodStill()
}

// generatorTimes sums up what the runners had to wait, and tells whether it was too much.
func (j *judge) generatorTimes() (waited bool) {
	g := &j.v.Generator
	var wall float64
	for _, r := range j.m.Runners {
		g.CPUSeconds += r.CPUSeconds
		g.RunDelaySeconds += r.RunDelaySeconds
		g.StallMaxMS = max(g.StallMaxMS, float64(r.StallMaxUS)/1000)
		g.GCPauseMaxMS = max(g.GCPauseMaxMS, float64(r.GCPauseMaxUS)/1000)
		wall += float64(r.EndedUS-r.StartedUS) / 1e6
	}
	return wall > 0 && g.RunDelaySeconds > starvedShare*wall && g.RunDelaySeconds > g.CPUSeconds
}

// stoodStill says that a runner once stood still for so long that a noop may be late by that
// alone. Waiting for a core in small pieces makes none late.
func (j *judge) stoodStill() bool {
	return j.v.Generator.StallMaxMS > float64(j.m.Plan.LateMS)/2
}

// generatorCriterion is advisory: nothing is lost by a client that reads late, so accounts
// stand; but how late a noop was, such a client cannot say.
func (j *judge) generatorCriterion() {
	g := j.v.Generator
	j.add(Criterion{
		Name: "the generator kept up", Limit: fmt.Sprintf("stall under %d ms", j.m.Plan.LateMS/2),
		Actual: fmt.Sprintf("stall %.0f ms, waited %.1f s for CPU", g.StallMaxMS, g.RunDelaySeconds),
		Pass:   !g.Starved, Advisory: true, Why: "a starved client must not be read as a late server",
	}, fmt.Sprintf("the generator was starved, so lateness is not the server's: the runners computed for %.1f s, waited %.1f s for a core and once stood still for %s",
		g.CPUSeconds, g.RunDelaySeconds, time.Duration(g.StallMaxMS*float64(time.Millisecond)).Round(time.Millisecond)))
}
