package verdict

import (
	"fmt"
	"strings"
	"time"
)

// The generator counts as starved if its threads waited for a core for more than this share of the
// run's time and longer than they computed, or if it once stalled for over half of LATE_MS.
const starvedShare = 0.05

func (j *judge) generator() {
	j.generatorTimes()
	j.v.Generator.Starved = j.waitedLong() || j.stoodStill()
}

// generatorTimes sums up the CPU times and stalls of the runners.
func (j *judge) generatorTimes() {
	g := &j.v.Generator
	for _, r := range j.m.Runners {
		g.CPUSeconds += r.CPUSeconds
		g.RunDelaySeconds += r.RunDelaySeconds
		g.StallMaxMS = max(g.StallMaxMS, float64(r.StallMaxUS)/1000)
		g.GCPauseMaxMS = max(g.GCPauseMaxMS, float64(r.GCPauseMaxUS)/1000)
	}
}

// waitedShare is how long the runners waited for a core, as a share of the time that they ran.
func (j *judge) waitedShare() float64 {
	var wall float64
	for _, r := range j.m.Runners {
		wall += float64(r.EndedUS-r.StartedUS) / 1e6
	}
	if wall <= 0 {
		return 0
	}
	return j.v.Generator.RunDelaySeconds / wall
}

// waitedLong says that the runners waited for a core for too long.
func (j *judge) waitedLong() bool {
	return j.waitedShare() > starvedShare && j.v.Generator.RunDelaySeconds > j.v.Generator.CPUSeconds
}

// stoodStill says that a runner once stalled for so long that a noop may be late by that alone. Many
// short waits for a core make no noop late.
func (j *judge) stoodStill() bool {
	return j.v.Generator.StallMaxMS > float64(j.m.Plan.LateMS)/2
}

// generatorCriterion is advisory. A client that reads late loses nothing, so counts hold; but it cannot
// say how late a noop was.
func (j *judge) generatorCriterion() {
	g := j.v.Generator
	var broken []string
	if j.stoodStill() {
		broken = append(broken, fmt.Sprintf("once stalled for %s", time.Duration(g.StallMaxMS*float64(time.Millisecond)).Round(time.Millisecond)))
	}
	if j.waitedLong() {
		broken = append(broken, fmt.Sprintf("waited for a core for %.1f s, %.0f %% of their time, and computed for %.1f s", g.RunDelaySeconds, 100*j.waitedShare(), g.CPUSeconds))
	}
	actual := fmt.Sprintf("stall %.0f ms, waited %.1f s, used %.1f s", g.StallMaxMS, g.RunDelaySeconds, g.CPUSeconds)
	if len(broken) > 0 {
		actual = strings.Join(broken, ", and ")
	}
	j.add(Criterion{
		Name:   "the generator kept up",
		Limit:  fmt.Sprintf("stall under %d ms, CPU wait under %.0f %% or below CPU used", j.m.Plan.LateMS/2, 100*starvedShare),
		Actual: actual, Pass: !g.Starved, Advisory: true, Why: "a starved client must not be read as a late server",
	}, "the generator was starved, so lateness is not the server's: the runners "+actual)
}
