package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/resources"
)

// A spike is a stretch of points in which a signal is far above its median.
type spike struct {
	signal         *signal
	from, to, peak int // points; from and to are included
}

// A signal is a series in which spikes are searched. Floor is the smallest rise that counts.
type signal struct {
	chart, name string
	values      []float64
	floor       float64
	unit        string
	median      float64
}

const (
	outlier = 6 // robust deviations above the median that make a spike
	joined  = 2 // quiet points within one spike
	listed  = 4 // spikes of a signal that are listed
)

// findSpikes returns the highest spikes of each signal, in order of time.
func (s *subject) findSpikes() (all []spike) {
	t := s.series
	for _, g := range []*signal{
		{chart: "lateness", name: s.latenessName() + ", max", values: t.max, floor: 20, unit: "ms"},
		{chart: "target-cpu", name: "CPU of the backend", values: t.backendCPU, floor: 5, unit: "%"},
		{chart: "target-cpu", name: "CPU of nginx", values: t.nginxCPU, floor: 5, unit: "%"},
		{chart: "runner-cpu", name: "CPU of the runners", values: t.runnerCPU, floor: 10, unit: "%"},
		{chart: "network", name: retransmits, values: t.retransmits, floor: 10},
		{chart: "network", name: overflows, values: t.overflows},
	} {
		found := g.spikes()
		slices.SortStableFunc(found, func(a, b spike) int { return cmp.Compare(g.values[b.peak], g.values[a.peak]) })
		all = append(all, found[:min(len(found), listed)]...)
	}
	slices.SortStableFunc(all, func(a, b spike) int { return a.from - b.from })
	return all
}

func (g *signal) spikes() (out []spike) {
	values := known(g.values, 0, len(g.values))
	if len(values) < resources.LeastPoints {
		return nil
	}
	g.median = resources.Median(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - g.median)
	}
	const normal = 1.4826 // median deviation to standard deviation
	limit := g.median + max(outlier*normal*resources.Median(deviations), g.floor)
	for i, v := range g.values {
		if !(v > limit) {
			continue
		}
		if n := len(out); n == 0 || i-out[n-1].to > joined+1 {
			out = append(out, spike{g, i, i, i})
		}
		last := &out[len(out)-1]
		last.to = i
		if v > g.values[last.peak] {
			last.peak = i
		}
	}
	return out
}

// A cause is something that can make a spike, and the points at which it was active.
type cause struct {
	name   string
	active func(i int) bool
}

// The names of causes that are signals too.
const (
	retransmits = "TCP retransmits"
	overflows   = "accept queue overflows"
)

func (s *subject) causes() (out []cause) {
	t := s.series
	within := func(from, to float64) func(int) bool {
		return func(i int) bool { return t.at(i)-float64(step) <= to && t.at(i) > from }
	}
	for _, b := range s.bands {
		if b.Cause != "" {
			out = append(out, cause{b.Cause, within(b.From, b.To)})
		}
	}
	for i := range s.v.Actions {
		if a := &s.v.Actions[i]; a.Began() {
			out = append(out, cause{"the action " + a.Name, within(a.StartedUnix, a.Over())})
		}
	}
	for _, c := range []struct {
		name   string
		values []float64
		limit  float64
	}{
		{overflows, t.overflows, 0},
		{retransmits, t.retransmits, 0},
		{"a garbage collection in the backend", t.backendGCs, 0},
		{"a garbage collection that paused a runner for over 1 ms", t.runnerGC, 1},
		{"a stall of a runner over 50 ms", t.stall, 50},
		{"run-queue latency of the runners", t.runDelay, 200 * float64(step)},
		{"the host over 90 % busy", t.hostCPU, 90},
	} {
		out = append(out, cause{c.name, func(i int) bool { return c.values != nil && c.values[i] > c.limit }})
	}
	return append(out, cause{"a checkpoint of a runner", s.checkpoint})
}

// checkpointEvery is how often a runner writes its shard, in seconds.
const checkpointEvery = 30

func (s *subject) checkpoint(i int) bool {
	for _, r := range s.Merged.Runners {
		since := s.series.at(i) - float64(r.StartedUS)/1e6
		if since >= checkpointEvery && math.Floor(since/checkpointEvery) > math.Floor((since-float64(step))/checkpointEvery) {
			return true
		}
	}
	return false
}

// coincided returns the causes that were active between two points, other than a signal itself, each with its share of the
// whole run: a cause that is nearly always active explains nothing.
func (s *subject) coincided(from, to int, causes []cause, except string) string {
	var out []string
	from = max(from-1, 0) // a cause that started in the step before may still be active
	for _, c := range causes {
		here, all := false, 0
		for i := range s.series.n {
			if c.active(i) {
				all++
				here = here || from <= i && i <= to
			}
		}
		if often := float64(all) / float64(s.series.n); here && often < .9 && c.name != except {
			out = append(out, fmt.Sprintf("%s (in %s of the run)", c.name, format.Percent(100*often)))
		}
	}
	if len(out) == 0 {
		return "nothing that was measured"
	}
	return strings.Join(out, "; ")
}

func (s *subject) spikeTable() Section {
	out := Section{ID: "spikes", Title: "Spikes and coinciding events", Short: "Spikes"}
	if len(s.spikes) == 0 {
		return out
	}
	t := Table{Columns: Columns("#no.", "when (UTC)", "signal", "#peak", "#median", "coinciding events")}
	causes := s.causes()
	for i, p := range s.spikes {
		when := format.Clock(s.series.at(p.from) - float64(step))
		if p.to > p.from {
			when += " to " + format.Clock(s.series.at(p.to))
		}
		g := p.signal
		row := Cells(fmt.Sprint(i+1), when, g.name, format.Quantity(math.Round(10*g.values[p.peak])/10, g.unit), format.Quantity(g.median, g.unit), s.coincided(p.from, p.to, causes, g.name))
		row[1].At = s.series.at(p.peak)
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []Table{t}
	out.Notes = []string{fmt.Sprintf("A spike is more than %d robust deviations (median, MAD) above the median. The %d highest of each signal are listed and numbered in the charts. An event at the same time is not necessarily the cause.", outlier, listed)}
	return out
}

// marks returns the spikes of a chart.
func (s *subject) marks(chart string) (out []Event) {
	for i, p := range s.spikes {
		if p.signal.chart == chart {
			out = append(out, Event{Number: i + 1, At: s.series.at(p.peak)})
		}
	}
	return out
}
