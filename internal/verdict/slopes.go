package verdict

import (
	"fmt"
	"math"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// A Figure is a number that each window has. A setting may limit its growth per hour.
type Figure struct {
	Name, Unit string
	Value      func(w *Window) float64 // NaN: not known
	limit      *slopeLimit             // nil: no setting limits the growth
}

// A slopeLimit is the setting that limits the growth of a figure, and the check of that limit.
type slopeLimit struct {
	check   CheckID
	setting string
	value   func(p *plan.Plan) float64 // the limit of a plan, per hour; 0: no limit
	isDelay bool                       // a delay of the load generator may cause the growth
	why     string
}

// Figures are the figures of a window that the report shows.
var Figures = []Figure{
	{Name: "faulty messages", Value: func(w *Window) float64 { return float64(w.Faults) }},
	{Name: "late messages", Value: func(w *Window) float64 { return float64(w.Late) }},
	{"lateness p99", "ms", func(w *Window) float64 { return knownIf(w.Messages > 0, w.Lateness) }, &slopeLimit{
		CheckLatenessSlope, "MAX_LATENESS_SLOPE", func(p *plan.Plan) float64 { return p.MaxLatenessSlope }, true, "messages arrive later each hour",
	}},
	controlLateness,
	{"streams opened per hour", "", func(w *Window) float64 { return float64(w.Opened) / w.Seconds * 3600 }, &slopeLimit{
		CheckReconnectSlope, "MAX_RECONNECT_SLOPE", func(p *plan.Plan) float64 { return p.MaxReconnectSlope }, false, "clients are disconnected more often each hour",
	}},
	{"average connect time", "ms", func(w *Window) float64 { return knownIf(w.Connect > 0, w.Connect) }, &slopeLimit{
		CheckConnectSlope, "MAX_CONNECT_SLOPE", func(p *plan.Plan) float64 { return p.MaxConnectSlope }, true, "clients wait longer for a stream each hour",
	}},
	{"memory of the target", "MiB", func(w *Window) float64 { return knownIf(w.Memory > 0, float64(w.Memory)/(1<<20)) }, &slopeLimit{
		CheckMemorySlope, "MAX_MEMORY_SLOPE", func(p *plan.Plan) float64 { return p.MaxMemorySlope }, false, "a process that keeps growing is eventually killed",
	}},
	{Name: "memory of the runners", Unit: "MiB", Value: func(w *Window) float64 { return float64(w.RunnerMem) / (1 << 20) }},
	{Name: "CPU of the runners", Unit: "%", Value: func(w *Window) float64 { return w.RunnerCPU }},
}

// controlLateness is the lateness of the control group, which shows the delay of the load generator.
var controlLateness = Figure{Name: "longest lateness of the control group", Unit: "ms", Value: func(w *Window) float64 {
	return knownIf(w.ControlLate > 0, w.ControlLate)
}}

func knownIf(known bool, value float64) float64 {
	if known {
		return value
	}
	return math.NaN()
}

// Slope returns the growth of a figure per hour, without the first and the last window, in which streams open and end.
// ok is false if the figure is known in fewer than resources.MinPoints of the other windows.
func (v *Verdict) Slope(f *Figure) (s resources.Slope, ok bool) {
	var hours, values []float64
	for i := 1; i < len(v.Windows)-1; i++ {
		w := &v.Windows[i]
		if value := f.Value(w); !math.IsNaN(value) {
			hours, values = append(hours, w.StartUnix/3600), append(values, value)
		}
	}
	return resources.SlopeOf(hours, values)
}

// Trends describes the figures that grow or shrink: the confidence interval of their slope does not contain 0.
func (v *Verdict) Trends() (out []string) {
	for i := range Figures {
		f := &Figures[i]
		if slope, ok := v.Slope(f); ok && (slope.Low > 0 || slope.High < 0) {
			out = append(out, f.Name+" "+f.perHour(slope))
		}
	}
	return out
}

// Interval formats the confidence interval of a slope.
func (f *Figure) Interval(s resources.Slope) string {
	return format.Change(s.Low, f.Unit) + " to " + format.Change(s.High, f.Unit)
}

func (f *Figure) perHour(s resources.Slope) string {
	return fmt.Sprintf("%s per hour (95 %% interval: %s)", format.Change(s.PerUnit, f.Unit), f.Interval(s))
}

func (v *Verdict) slopeChecks() (out []Check) {
	for i := range Figures {
		if l := Figures[i].limit; l != nil && l.value(&v.Plan) > 0 {
			out = append(out, v.slopeCheck(&Figures[i], l))
		}
	}
	return out
}

// slopeCheck returns the check of one figure. It is unmet if the whole confidence interval of the slope is above the
// limit, or if the slope is unknown.
func (v *Verdict) slopeCheck(f *Figure, l *slopeLimit) Check {
	limit := l.value(&v.Plan)
	c := Check{ID: l.check, Name: "growth per hour: " + f.Name, Limit: format.Quantity(limit, f.Unit), Actual: "not known", Why: l.why}
	slope, ok := v.Slope(f)
	if !ok {
		c.Reasons = []string{fmt.Sprintf("the growth is unknown (%s): %s needs %d windows with a known value; shorten WINDOW, or soak longer", f.Name, l.setting, resources.MinPoints+2)}
		return c.AsDoubt()
	}
	c.Actual, c.Pass = format.Change(slope.PerUnit, f.Unit)+" ("+f.Interval(slope)+")", slope.Low <= limit
	if c.Pass {
		return c
	}
	c.Reasons = []string{fmt.Sprintf("the %s grew by %s; the limit is %s (%s)", f.Name, f.perHour(slope), c.Limit, l.setting)}
	if l.isDelay && v.generatorSlowed(slope.PerUnit-limit) {
		c.Reasons[0] += "; the load generator was late too, so its own delay may be the cause"
		return c.AsDoubt()
	}
	return c
}

// generatorSlowed reports whether the load generator may have caused the growth of a delay, in milliseconds per hour.
// That is possible if the generator was saturated, or if the lateness of its control group grew by at least as much.
func (v *Verdict) generatorSlowed(growth float64) bool {
	slope, ok := v.Slope(&controlLateness)
	return v.Generator.Saturated || ok && slope.Low > 0 && slope.PerUnit >= growth
}
