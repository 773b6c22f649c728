package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Use is the CPU time of a load generator, in seconds summed over its threads. A generator is saturated if the delays
// that it measures may be its own, because its threads waited for a core or because it stalled.
type Use struct {
	CPU    float64       // computing
	Waited float64       // ready to run, without a core
	Wall   float64       // that passed
	Stall  time.Duration // longest time by which one of its processes woke up late
}

// mostWaited is the share of the time for which threads may wait for a core.
const mostWaited = .05

// WaitedLong says that threads waited for more than mostWaited of the time, and for longer than they computed.
func (u Use) WaitedLong() bool { return u.Wall > 0 && u.Waited > mostWaited*u.Wall && u.Waited > u.CPU }

// useOf is what the runners of a run took.
func useOf(m *shard.Merged) (u Use) {
	for _, r := range m.Runners {
		u.CPU += r.CPUSeconds
		u.Waited += r.RunDelaySeconds
		u.Stall = max(u.Stall, time.Duration(r.StallMaxUS)*time.Microsecond)
		u.Wall += max(float64(r.EndedUS-r.StartedUS)/1e6, 0)
	}
	return u
}

// stallsNoops says that a runner once stalled for so long that a noop may be late by that alone. Many
// short waits for a core make no noop late.
func stallsNoops(m *shard.Merged) bool { return useOf(m).Stall > m.Plan.Late()/2 }

// generator sums up what the runners took. Whether they were saturated is told by the lateness of noops, where there are any.
func generator(m *shard.Merged) (g Generator) {
	u := useOf(m)
	g.CPUSeconds, g.RunDelaySeconds, g.StallMaxMS = u.CPU, u.Waited, format.InMilliseconds(u.Stall)
	for _, r := range m.Runners {
		g.GCPauseMaxMS = max(g.GCPauseMaxMS, float64(r.GCPauseMaxUS)/1000)
	}
	return g
}

// KeptUp is advisory. A client that reads late loses nothing, so counts hold; but it cannot
// say how late a noop was.
func (s *Streams) KeptUp() Check {
	u := useOf(s.m)
	var broken []string
	limit := fmt.Sprintf("stall under %d ms", s.m.Plan.LateMS/2)
	actual := fmt.Sprintf("stall %.0f ms", format.InMilliseconds(u.Stall))
	const notTheServers = ", so lateness is not the server's"
	so := "" // many short waits make no noop late
	switch c := s.Control; {
	case c != nil && c.Decides:
		limit, actual = fmt.Sprintf("control group under %d ms late", s.m.Plan.LateMS/2), fmt.Sprintf("control group at most %.0f ms late", c.LongestMS)
		broken = c.saturates()
		switch {
		case len(broken) == 0:
			so = ", though the control group was in time"
		case c.Away && c.saturated > 0:
			so = ", or the network slow" + notTheServers
		default:
			so = notTheServers
		}
	case stallsNoops(s.m):
		so = notTheServers
		broken = append(broken, fmt.Sprintf("once stalled for %s", format.Duration(u.Stall)))
	}
	if u.WaitedLong() {
		broken = append(broken, fmt.Sprintf("waited for a core for %.1f s, %.0f %% of their time, and computed for %.1f s", u.Waited, 100*u.Waited/u.Wall, u.CPU))
	}
	actual += fmt.Sprintf(", waited %.1f s, used %.1f s", u.Waited, u.CPU)
	if len(broken) > 0 {
		actual = strings.Join(broken, ", and ")
	}
	return Check{
		ID: CheckGenerator, Name: "the generator kept up",
		Limit:  fmt.Sprintf("%s, CPU wait under %.0f %% or below CPU used", limit, 100*mostWaited),
		Actual: actual, Pass: len(broken) == 0, Severity: SeverityWarning, Why: "a saturated load generator must not be read as a late server",
		Reasons: []string{"the load generator was saturated" + so + ": the runners " + actual},
	}
}
