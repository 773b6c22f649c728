package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
)

// Timelines returns the charts over time of a run that is not complete, and their axis.
func Timelines(r *Run) (Section, Axis) {
	s := &pageBuilder{Run: r, v: r.Verdict, series: newSeries(r.Merged, r.Samples, r.Machine.Cores)}
	s.phases.start, s.phases.open = r.Verdict.StartedUnix, r.Verdict.StartedUnix
	axis := Axis{From: s.series.from, Step: s.series.step, N: s.series.n, Bands: []Band{}, Lines: s.lines()}
	if r.Verdict.Layout.Declared && r.Verdict.Plan.Connections == 0 {
		out := s.suiteTimelines()
		out.Charts = append(s.responses().Charts, out.Charts...)
		return out, axis
	}
	return s.timelines(), axis
}

// sampleGap returns the maximum distance, in steps, at which a line joins two points of a sampled series.
func (s *series) sampleGap() int { return int(15 / s.step) }

func (s *series) eachStep() string { return eachPeriod(int(s.step)) }

func eachPeriod(seconds int) string {
	if seconds == 1 {
		return "in each second"
	}
	return fmt.Sprintf("in each period of %d s", seconds)
}

func (s *pageBuilder) timelines() Section {
	t := s.series
	out := Section{ID: "timelines", Title: "Timelines"}
	if t.n == 0 {
		return out
	}
	width, sampleGap := s.barWidth(), t.sampleGap()
	lateGap := int(2.5*s.v.Plan.NoopInterval/float64(s.series.step)) + 1
	out.add(&Chart{ID: "connections", Title: "Streams", Note: "open and planned", Wide: true},
		splitAtGaps("open", "area", t.open, sampleGap), splitAtGaps("planned", "dashed", s.planned(), t.n), splitAtGaps("open on the backend", "", s.backendStreams(), sampleGap))
	s.cutsOverTime(&out)
	s.messagesOverTime(&out, width)
	title, note := "Lateness", "gap − interval, "+t.eachStep()
	if s.v.Service.ComparesClients() {
		title, note = "Spread between clients", "first client → each other client, "+t.eachStep()
	} else if !s.v.Service.HasInterval() {
		title, note = "Latency", s.latencyName()+", "+t.eachStep()
	}
	out.add(&Chart{ID: "lateness", Title: title, Note: note, Unit: "ms", Log: true, Wide: true},
		splitAtGaps("max", "", t.max, lateGap), splitAtGaps("p99", "", t.p99, lateGap), splitAtGaps("p50", "", t.p50, lateGap))
	s.processes(&out)
	return out
}

func (s *pageBuilder) processes(out *Section) {
	t := s.series
	sampleGap := t.sampleGap()
	out.add(&Chart{ID: "target-cpu", Title: "CPU of the target", Note: "percent of one core", Unit: "%"},
		splitAtGaps("backend", "", t.backendCPU, sampleGap), splitAtGaps("nginx", "", t.nginxCPU, sampleGap))
	out.add(&Chart{ID: "target-memory", Title: "Memory of the target", Note: "resident", Unit: "MiB"},
		splitAtGaps("backend", "", t.backendRSS, sampleGap), splitAtGaps("nginx", "", t.nginxRSS, sampleGap))
	out.add(&Chart{ID: "runner-cpu", Title: "CPU of the runners", Note: "sum of the runners, percent of one core", Unit: "%"},
		splitAtGaps("runners", "", t.runnerCPU, sampleGap))
	out.add(&Chart{ID: "runner-memory", Title: "Memory of the runners", Note: "sum of the runners; heap in use after the latest garbage collection", Unit: "MiB"},
		splitAtGaps("resident", "", t.runnerRSS, sampleGap), splitAtGaps("heap in use", "", t.runnerLive, sampleGap))
	out.add(&Chart{ID: "files", Title: "Open file descriptors"},
		splitAtGaps("runners", "", t.runnerFiles, sampleGap), splitAtGaps("nginx", "", t.nginxFiles, sampleGap), splitAtGaps("backend", "", t.backendFiles, sampleGap))
	out.add(&Chart{ID: "goroutines", Title: "Goroutines"},
		splitAtGaps("runners", "", t.runnerGo, sampleGap), splitAtGaps("backend", "", t.backendGo, sampleGap))
	out.add(&Chart{ID: "threads", Title: "Threads"},
		splitAtGaps("runners", "", t.runnerThreads, sampleGap), splitAtGaps("backend", "", t.backendThreads, sampleGap), splitAtGaps("nginx", "", t.nginxThreads, sampleGap))
	pauses := "longest pause of a runner, all pauses of the backend, "
	if t.backendGC == nil {
		pauses = "longest pause of a runner, "
	}
	out.add(&Chart{ID: "gc", Title: "Garbage collection", Note: pauses + t.eachStep(), Unit: "ms"},
		splitAtGaps("runner, longest", "", t.runnerGC, sampleGap), splitAtGaps("backend, all", "", t.backendGC, sampleGap))
	out.add(&Chart{ID: "waiting", Title: "Saturation of the runners", Note: "run-queue latency of all threads; longest stall of a runner; " + t.eachStep(), Unit: "ms"},
		splitAtGaps("run-queue latency", "", t.runDelay, sampleGap), splitAtGaps("stall", "", t.stall, sampleGap))
	out.add(&Chart{ID: "network", Title: "TCP of the host", Note: "all sockets of the host; " + t.eachStep()},
		splitAtGaps("retransmits", "", t.retransmits, sampleGap), splitAtGaps("accept queue overflows", "", t.overflows, sampleGap), splitAtGaps("dropped connects", "", t.drops, sampleGap))
	out.add(&Chart{ID: "bytes", Title: "Network of the host", Note: "all interfaces, loopback included", Unit: "MiB/s"},
		splitAtGaps("received", "", t.received, sampleGap), splitAtGaps("sent", "", t.transmitted, sampleGap))
	out.add(&Chart{ID: "dns", Title: "DNS", Note: "a lookup of the target's name by soak, every 5 s", Unit: "ms"},
		splitAtGaps("lookup", "", t.lookups, sampleGap))
	out.add(&Chart{ID: "host-cpu", Title: "CPU of the host", Note: "all cores, all programs", Unit: "%"},
		splitAtGaps("busy", "", t.hostCPU, sampleGap))
	out.Notes = []string{
		"Drag in a chart to zoom all charts; double-click to reset. Times are UTC.",
		fmt.Sprintf("Client series come from the runners, in steps of %d s. Source of the series of target and host: %s.", t.step, s.source()),
	}
}

// add appends a timeline with the lines that have points. It omits a chart without such lines.
func (s *Section) add(c *Chart, lines ...Series) {
	c.Kind = Timeline
	for _, line := range lines {
		if len(line.At) > 0 {
			c.Series = append(c.Series, line)
		}
	}
	if len(c.Series) > 0 {
		s.Charts = append(s.Charts, c)
	}
}

// backendStreams returns the number of streams that were open on the backend. It omits points within one step of the
// start, where a sample may precede the first stream. The point nearest to a sample taken after the end of the streams
// may be before that end. In that case, backendStreams moves the sample to the next point, and restores the last
// earlier sample.
func (s *pageBuilder) backendStreams() []float64 {
	out := slices.Clone(s.series.streams)
	for i := range out {
		if s.series.timeAt(i) < s.v.StartedUnix+float64(s.series.step) {
			out[i] = math.NaN()
		}
	}
	before := map[int]float64{} // the last sample before the end, by point
	for _, sample := range s.Samples {
		i := int(s.series.nearest(sample.Unix))
		if i < 0 || i+1 >= len(out) || s.phases.end <= 0 || s.series.timeAt(i) > s.phases.end || sample.BackendRSS == 0 {
			continue
		}
		if format.Unix(sample.At()) < s.phases.end {
			before[i] = float64(sample.Streams)
		} else {
			earlier, ok := before[i]
			if !ok {
				earlier = math.NaN()
			}
			out[i], out[i+1] = earlier, float64(sample.Streams)
		}
	}
	return out
}

// planned returns the planned number of open streams from the start of the run until the planned end of the hold phase,
// and 0 after it.
func (s *pageBuilder) planned() []float64 {
	out := make([]float64, s.series.n)
	end := s.v.StartedUnix + s.v.Plan.Hold().Seconds()
	for i := range out {
		switch at := s.series.timeAt(i); {
		case at <= s.v.StartedUnix:
			out[i] = math.NaN()
		case at <= end:
			out[i] = float64(s.v.Plan.Connections)
		}
	}
	return out
}

// minBars is the minimum number of bars in a chart of messages, if the run is long enough.
const minBars = 8

// barWidth returns the width of the bars in which messages are counted, in steps. It is 1 for a short run, and if the
// run does not determine when messages are sent.
func (s *pageBuilder) barWidth() int {
	if !s.v.Service.HasInterval() && s.v.Messages.Published == nil {
		return 1
	}
	if width := s.series.minBarWidth(s.v.Plan.NoopInterval); s.series.n > minBars*width {
		return width
	}
	return 1
}

// minBarWidth returns the smallest number of steps whose duration is a multiple of the interval, so that the same
// number of messages is expected in each bar. If that duration exceeds a minute, it returns the number of steps in one
// interval, rounded up.
func (s *series) minBarWidth(interval float64) int {
	for n := 1; int64(n)*s.step <= 60; n++ {
		if k := float64(int64(n)*s.step) / interval; k >= 1 && math.Abs(k-math.Round(k)) < 1e-9 {
			return n
		}
	}
	return max(int(math.Ceil(interval/float64(s.step))), 1)
}

// messagesPerBar counts the messages received in each bar of width steps, and estimates the expected ones from the
// number of open streams. Both slices have a value at the first point of each bar, and NaN at all others.
func (s *pageBuilder) messagesPerBar(width int) (expected, received []float64) {
	t := s.series
	if t.open == nil {
		return nil, nil
	}
	expected, received = make([]float64, t.n), make([]float64, t.n)
	for i := range t.n {
		expected[i], received[i] = math.NaN(), math.NaN()
	}
	for from := 0; from+width < t.n; from += width {
		open, sum := 0.0, 0.0
		for i := from + 1; i <= from+width; i++ {
			if math.IsNaN(t.open[i]) {
				continue // no runner reported
			}
			open += s.openSeconds(i)
			sum += t.noops[i]
		}
		expected[from] = open / s.v.Plan.NoopInterval
		received[from] = sum
	}
	return expected, received
}

// openSeconds estimates the total open time of all streams, in seconds, in the step that ends at point i. It
// interpolates between the numbers of open streams. Before the run starts and after it ends, no stream is open.
func (s *pageBuilder) openSeconds(i int) float64 {
	p, from, to := s.phases, s.series.timeAt(i-1), s.series.timeAt(i)
	first, last := s.series.open[i-1], s.series.open[i]
	if end := s.v.EndedUnix; end > from && last > 0 { // the last step of a run in progress is incomplete
		to = min(to, end)
	}
	clampTime := func(at float64) float64 { return min(max(at, from), to) }
	switch {
	case math.IsNaN(first) && p.start > from:
		return last * (to - (clampTime(p.start)+clampTime(p.open))/2)
	case math.IsNaN(first):
		return last / 2 * (to - from)
	case last == 0 && p.end > 0 && p.ending < to:
		return first * ((clampTime(p.ending)+clampTime(p.end))/2 - from)
	}
	return (first + last) / 2 * (to - from)
}

// extendToEnd copies the last value, which is at the first point of its bar, to the end of that bar.
func extendToEnd(values []float64, width int) []float64 {
	for i := len(values) - 1 - width; i >= 0; i-- {
		if !math.IsNaN(values[i]) {
			values[i+width] = values[i]
			break
		}
	}
	return values
}

// cutsOverTime adds a chart of the disconnects. Disconnects are not lines on every chart, because there may be
// thousands.
func (s *pageBuilder) cutsOverTime(out *Section) {
	t := s.series
	var disconnects, faulty []float64
	for r, c := range s.v.AllCuts() {
		if disconnects == nil {
			disconnects, faulty = make([]float64, t.n), make([]float64, t.n)
		}
		i := int(math.Floor((format.Unix(s.Merged.Runners[r.Runner].At(c.At)) - float64(t.from)) / float64(s.series.step)))
		if i < 0 || i >= t.n {
			continue // outside of the axis, because a clock is wrong
		}
		disconnects[i]++
		if c.Missed+c.Duplicated+c.Announced > 0 {
			faulty[i]++
		}
	}
	out.add(&Chart{ID: "cuts", Title: "Disconnects", Note: "by the load generator, " + t.eachStep(), Wide: true},
		splitAtGaps("disconnects", "bars", disconnects, t.sampleGap()), splitAtGaps("with a loss, a duplicate or a gap", "", faulty, t.sampleGap()))
}
