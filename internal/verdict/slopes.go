package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
)

// Slope returns by how much a figure of the windows grows per hour. It leaves out the first window, in which streams open, and the last,
// in which they end. It is not ok for fewer than LeastPoints windows between them.
func (v *Verdict) Slope(of func(w *Window) float64) (s resources.Slope, ok bool) {
	var hours, values []float64
	for i := 1; i < len(v.Windows)-1; i++ {
		w := &v.Windows[i]
		hours, values = append(hours, w.StartUnix/3600), append(values, of(w))
	}
	return resources.SlopeOf(hours, values)
}

// MemoryMiB returns the largest memory of the target in a window.
func (w *Window) MemoryMiB() float64 { return float64(w.Memory) / (1 << 20) }

// memorySlope returns the check of MAX_MEMORY_SLOPE; nothing without a limit. Growth counts if all of its interval is above the limit.
func (v *Verdict) memorySlope() []Check {
	const unit = "MiB"
	limit := v.Plan.MaxMemorySlope
	if limit == 0 {
		return nil
	}
	c := Check{
		ID: CheckMemorySlope, Name: "growth of the target's memory per hour", Limit: format.Quantity(limit, unit), Actual: "not known",
		Why: "a process that grows is killed in the end",
	}
	slope, ok := v.Slope((*Window).MemoryMiB)
	known := ok
	for i := 1; known && i < len(v.Windows)-1; i++ {
		known = v.Windows[i].Memory > 0
	}
	if !known {
		c.Reasons = []string{fmt.Sprintf("the growth of the target's memory is not known: MAX_MEMORY_SLOPE needs %d windows with samples of it; shorten WINDOW, or soak longer", resources.LeastPoints+2)}
		return []Check{c.Inconclusive()}
	}
	interval := format.Change(slope.Low, unit) + " to " + format.Change(slope.High, unit)
	c.Actual, c.Pass = format.Change(slope.PerUnit, unit)+" ("+interval+")", slope.Low <= limit
	if !c.Pass {
		c.Reasons = []string{fmt.Sprintf("the memory of the target grew by %s per hour (95 %% interval: %s); the limit is %s (MAX_MEMORY_SLOPE)", format.Change(slope.PerUnit, unit), interval, c.Limit)}
	}
	return []Check{c}
}
