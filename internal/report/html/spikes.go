package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/resources"
)

// A spike is a stretch of points in which a signal is far above its own median.
type spike struct {
	signal   *signal
	from, to int // points, both within
	peak     int
	number   int
}

// A signal is a series that is watched for spikes. Floor is the least rise above the usual that
// is worth a line.
type signal struct {
	chart, name string
	values      []float64
	floor       float64
	text        func(float64) string
	usual       float64
}

// outlier is how many deviations above the median a point of a spike is; joined is how many quiet
// points may lie within one spike; listed is how many spikes of a signal are listed.
const (
	outlier = 6
	joined  = 2
	listed  = 4
)

func (s *subject) signals() []*signal {
	t := s.series
	number := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	return []*signal{
		{chart: "lateness", name: s.latenessName() + ", max", values: t.max, floor: 20, text: duration},
		{chart: "target-cpu", name: "CPU of the backend", values: t.backendCPU, floor: 5, text: percent},
		{chart: "target-cpu", name: "CPU of nginx", values: t.nginxCPU, floor: 5, text: percent},
		{chart: "runner-cpu", name: "CPU of the runners", values: t.runnerCPU, floor: 10, text: percent},
		{chart: "network", name: "TCP retransmits", values: t.retransmits, floor: 10, text: number},
		{chart: "network", name: "accept queue overflows", values: t.overflows, floor: 0, text: number},
	}
}

// findSpikes finds the highest spikes of each signal, in the order of time.
func (s *subject) findSpikes() []spike {
	var all []spike
	for _, g := range s.signals() {
		found := g.spikes()
		slices.SortStableFunc(found, func(a, b spike) int { return cmp.Compare(g.values[b.peak], g.values[a.peak]) })
		all = append(all, found[:min(len(found), listed)]...)
	}
	slices.SortStableFunc(all, func(a, b spike) int { return a.from - b.from })
	for i := range all {
		all[i].number = i + 1
	}
	return all
}

func (g *signal) spikes() (out []spike) {
	values := known(g.values, 0, len(g.values))
	if len(values) < resources.LeastPoints {
		return nil
	}
	g.usual = resources.Median(values)
	away := make([]float64, len(values))
	for i, v := range values {
		away[i] = math.Abs(v - g.usual)
	}
	const normal = 1.4826 // median deviation to standard deviation
	limit := g.usual + max(outlier*normal*resources.Median(away), g.floor)
	for i, v := range g.values {
		if math.IsNaN(v) || v <= limit {
			continue
		}
		if n := len(out); n > 0 && i-out[n-1].to <= joined+1 {
			out[n-1].to = i
			if v > g.values[out[n-1].peak] {
				out[n-1].peak = i
			}
			continue
		}
		out = append(out, spike{signal: g, from: i, to: i, peak: i})
	}
	return out
}

// A cause is something that can make a spike, and where it was at work.
type cause struct {
	name   string
	at     func(i int) bool
	signal string // of which it is the same
}

func above(values []float64, limit float64) func(int) bool {
	return func(i int) bool { return values != nil && values[i] > limit }
}

func (s *subject) causes() []cause {
	t := s.series
	within := func(from, to float64) func(int) bool {
		return func(i int) bool { return t.at(i)-float64(step) <= to && t.at(i) > from }
	}
	var out []cause
	for _, b := range s.bands {
		if b.Cause != "" {
			out = append(out, cause{name: b.Cause, at: within(b.From, b.To)})
		}
	}
	for i := range s.v.Actions {
		if a := &s.v.Actions[i]; a.Began() {
			out = append(out, cause{name: "the action " + a.Name, at: within(a.StartedUnix, a.Over())})
		}
	}
	return append(out, []cause{
		{name: "accept queue overflows", at: above(t.overflows, 0), signal: "accept queue overflows"},
		{name: "TCP retransmits", at: above(t.retransmits, 0), signal: "TCP retransmits"},
		{name: "a collection in the backend", at: above(t.backendGCs, 0)},
		{name: "a collection that paused a runner for over 1 ms", at: above(t.runnerGC, 1)},
		{name: "a checkpoint of a runner", at: s.checkpoint},
		{name: "a stall of a runner over 50 ms", at: above(t.stall, 50)},
		{name: "run-queue latency of the runners", at: above(t.runDelay, 200*float64(step))},
		{name: "the host over 90 % busy", at: above(t.hostCPU, 90)},
	}...)
}

// checkpointEvery is how often a runner writes its shard.
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

// coincided says what was at work between two points, except what is the same as a signal. As chance alone finds what is
// common, each cause comes with the share of the whole run in which it was at work; what almost always was explains
// nothing.
func (s *subject) coincided(from, to int, causes []cause, except string) string {
	var out []string
	from = max(from-1, 0) // what began in the step before may still be at work
	for _, c := range causes {
		if c.signal != "" && c.signal == except {
			continue
		}
		here, all := false, 0
		for i := range s.series.n {
			if c.at(i) {
				all++
				here = here || from <= i && i <= to
			}
		}
		if often := float64(all) / float64(s.series.n); here && often < .9 {
			out = append(out, fmt.Sprintf("%s (in %s of the run)", c.name, percent(100*often)))
		}
	}
	if len(out) == 0 {
		return "nothing that was measured"
	}
	return strings.Join(out, "; ")
}

func (s *subject) spikeTable() Section {
	out := Section{ID: "spikes", Title: "Spikes, and what coincided", Short: "Spikes"}
	if s.series.n == 0 {
		return out
	}
	if len(s.spikes) == 0 {
		out.Lead = []string{"None: no signal left its usual range."}
		return out
	}
	t := Table{Columns: columns("#", "when (UTC)", "signal", "#peak", "#usual", "what coincided")}
	t.Columns[0] = Column{Name: "no.", Number: true}
	causes := s.causes()
	for _, p := range s.spikes {
		when := clock(s.series.at(p.from) - float64(step))
		if p.to > p.from {
			when += " to " + clock(s.series.at(p.to))
		}
		g := p.signal
		row := cells(fmt.Sprint(p.number), when, g.name, g.text(g.values[p.peak]), g.text(g.usual), s.coincided(p.from, p.to, causes, g.name))
		row[1].At = s.series.at(p.peak)
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []Table{t}
	out.Notes = []string{fmt.Sprintf("A spike is more than %d robust deviations (median, MAD) above the usual; the %d highest of each signal are listed and numbered in the charts. To coincide is not to cause: what is at work in much of the run coincides by chance.", outlier, listed)}
	return out
}

// marks are the spikes of a chart.
func (s *subject) marks(chart string) (out []Event) {
	for _, p := range s.spikes {
		if p.signal.chart == chart {
			out = append(out, Event{Number: p.number, At: s.series.at(p.peak)})
		}
	}
	return out
}
