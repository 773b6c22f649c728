package suite

import (
	"slices"
	"sort"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A requestGauge is the comparison of a gauge of open requests (GAUGE) with the number of responses that clients waited
// for. The difference is the number of abandoned requests that the service was still answering.
type requestGauge struct {
	name    string        // "" if GAUGE is not set, or no request was abandoned
	problem string        // why the gauge cannot be used; "" if it can
	open    time.Duration // mean time for which an abandoned request stayed open
	growth  float64       // increase from the first sample to the last; 0 if the gauge fell
}

// requestGauge evaluates the samples of the gauge. By Little's law, the mean time for which an abandoned request stayed
// open is the time integral of the open abandoned requests, divided by the number of all abandoned requests.
func (f *finiteRun) requestGauge() (g requestGauge) {
	if f.v.Abandoned == 0 {
		return g
	}
	g.name = f.parameter("GAUGE")
	samples := slices.DeleteFunc(slices.Clone(f.Samples), func(s resources.Sample) bool { return s.Gauge == nil })
	starts, ends, complete := f.responseTimes()
	switch {
	case g.name == "":
		return g
	case f.counterGauge():
		g.problem = counterReason(g.name, "open requests")
	case len(samples) < 2:
		g.problem = sentence("the gauge %s has fewer than two samples; set GAUGE to a metric of BACKEND_URL/metrics or MODEL_URL/metrics, or to PromQL with PROMETHEUS_URL", g.name)
	case !complete:
		g.problem = "a runner did not log all responses, so the number of responses that clients waited for is unknown"
	}
	if g.problem != "" {
		return g
	}
	base, sum, previous := *samples[0].Gauge, 0., 0.
	for i := range samples {
		s := &samples[i]
		at := format.Unix(s.At())
		extra := *s.Gauge - base - float64(countUntil(starts, at)-countUntil(ends, at))
		if i > 0 {
			sum += (previous + extra) / 2 * s.At().Sub(samples[i-1].At()).Seconds()
		}
		previous, g.growth = extra, max(*s.Gauge-base, 0)
	}
	g.open = time.Duration(max(sum, 0) / float64(f.v.Abandoned) * float64(time.Second))
	return g
}

// responseTimes returns the sorted Unix times of the starts and ends of responses. complete reports whether the logs
// list all responses.
func (f *finiteRun) responseTimes() (starts, ends []float64, complete bool) {
	complete = true
	for i := range f.responses.Logs {
		for response := range f.responses.Logs[i].All() {
			starts, ends = append(starts, response.From), append(ends, response.To)
		}
		complete = complete && f.responses.Logs[i].Unlisted == 0
	}
	slices.Sort(starts)
	slices.Sort(ends)
	return starts, ends, complete
}

// countUntil returns the number of sorted times up to and including a time.
func countUntil(times []float64, at float64) int {
	return sort.Search(len(times), func(i int) bool { return times[i] > at })
}

func (g *requestGauge) facts() []verdict.Fact {
	if g.name == "" || g.problem != "" {
		return nil
	}
	return []verdict.Fact{{Name: "gauge", Value: sentence("%s: the service continued to answer an abandoned request for %s on average; %s open after the run",
		g.name, format.Duration(g.open), format.Plural(int64(g.growth), "request was", "requests were"))}}
}
