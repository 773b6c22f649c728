package suite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var vanish = Suite{
	Name:   "vanish",
	Short:  "let clients disappear without closing, and measure when the service notices",
	Script: []string{"load-tests", "sse", "vanish.js"},
	Settings: []Setting{
		{"VANISH_PERCENT", "percentage of streams that vanish, 1 to 50 (default: 20)"},
		{"STEADY_SECONDS", "time for which all streams are open before some vanish in seconds; above the scrape interval of PROMETHEUS_URL (default: 2)"},
		{"GAUGE", "the service's gauge of open streams: a metric of BACKEND_URL/metrics, or PromQL with PROMETHEUS_URL (default: that of the backend)"},
		bystanderSetting,
	},
	Target: Target{Kind: Direct, Streams: true},
	Page:   Page{Doc: "docs/suites.md", Ended: "vanished"},
	Plan: Plan{DeclaredLoad: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=1000", "SECONDS=132", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=100", "SECONDS=41", "NOOP_INTERVAL=1"},
	}},
	Assess: assessVanish,
}

func assessVanish(r *Run) verdict.Assessment {
	m, open := r.Rounds[0], r.streamsOf(r.isNotSelected)
	w := r.streamGauge(m)
	a := verdict.Assessment{
		Streams: open, Warnings: open.Warnings,
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, bystanderFaults(open), open.Agreement(),
			[]verdict.Check{r.checkBystanders(open), w.checkAllVanished(), w.checkGauge(), w.checkNoticed()}),
		Facts: append([]verdict.Fact{
			{Name: "vanished", Value: sentence("%v of %v clients, at once", w.vanished, m.Plan.Connections)},
			{Name: "noticed", Value: fmt.Sprintf("half of them after %s, 99 %% after %s, all after %s", w.fallText(.5), w.fallText(.99), w.fallText(1))},
		}, streamFacts(open, m)...),
		Passed: []string{fmt.Sprintf("the service noticed after %s that %s had vanished", w.fallText(1), format.Count(w.vanished, "client"))},
		Tables: []verdict.Table{w.table()},
	}
	if !m.Service.Backend {
		a.Facts = append(a.Facts, verdict.Fact{Name: "unknown", Value: "whether the service released the memory of vanished clients, because only its gauge is available"})
	}
	if at, ok := w.fallTime(1); ok {
		a.Metrics = []verdict.Metric{{Name: "noticed", Unit: "s", Value: at.Seconds()}}
	}
	return a
}

// A streamGauge is the service's gauge of its open streams while clients vanished.
type streamGauge struct {
	name              string // "": GAUGE is not set
	planned, vanished int    // streams
	limit             time.Duration
	base, before      float64   // value without streams, and with all of them
	drift             float64   // change in settleTime before clients vanished
	unit              float64   // increase per stream
	sampled           bool      // there are samples before clients vanished
	counter           bool      // GAUGE is a counter
	readings          []reading // readings after clients vanished
}

type reading struct {
	after time.Duration
	value float64
}

// settleTime is the time before clients vanish in which the gauge must not change.
const settleTime = 2 * time.Second

// streamGauge evaluates the samples of the gauge. A sample counts at the end of its second.
func (r *Run) streamGauge(m *shard.Merged) (w streamGauge) {
	drops := sumsByStage(m, "vanish_vanished")["vanished"]
	w = streamGauge{name: r.parameter("GAUGE"), vanished: int(drops.Sum), limit: time.Duration(r.number("NOTICE_SECONDS")) * time.Second}
	if m.Service.Backend {
		w.name = cmp.Or(w.name, "backend_streams_open")
	}
	for _, st := range stagesOf(m) {
		w.planned = st.Requests
	}
	w.counter = r.counterGauge()
	vanishedAt := time.UnixMicro(drops.FirstUS)
	lowest, highest := math.Inf(1), math.Inf(-1)
	for i, s := range r.Samples {
		v, ok := gaugeOf(s, r.parameter("GAUGE"))
		at := endOf(s)
		switch after := at.Sub(vanishedAt); {
		case !ok:
		case i == 0:
			w.base = v
		case after <= 0:
			w.before, w.sampled = v, true
			if after > -settleTime {
				lowest, highest = min(lowest, v), max(highest, v)
			}
		case after <= w.limit:
			w.readings = append(w.readings, reading{after, v})
		}
	}
	w.drift = max(highest-lowest, 0)
	w.unit = (w.before - w.base) / float64(max(m.Plan.Connections, 1))
	return w
}

// gaugeOf returns the value of the gauge in a sample. Without a name it is the number of open streams of our own
// backend.
func gaugeOf(s resources.Sample, name string) (v float64, ok bool) {
	switch {
	case name == "":
		return float64(s.Streams), s.BackendRSS > 0
	case s.Gauge == nil:
		return 0, false
	}
	return *s.Gauge, true
}

// fallTime returns the time from which the gauge stayed lower by a share of the vanished clients. A low reading that is
// followed by a higher one does not count: it is of a part of the service, or of a restart.
func (w *streamGauge) fallTime(share float64) (after time.Duration, ok bool) {
	if !w.isGauge() || w.vanished == 0 {
		return 0, false
	}
	target := w.before - (math.Ceil(share*float64(w.vanished))-.5)*w.unit
	for _, r := range slices.Backward(w.readings) {
		if r.value > target {
			break
		}
		if r.value >= w.lowerBound() {
			after, ok = r.after, true
		}
	}
	return after, ok
}

// last returns the last reading.
func (w *streamGauge) last() float64 {
	if n := len(w.readings); n > 0 {
		return w.readings[n-1].value
	}
	return w.before
}

// lowerBound returns the lowest possible value while the other streams are open. A lower one excludes some of them, or
// other users of the service have disconnected.
func (w *streamGauge) lowerBound() float64 {
	return w.before - (float64(w.vanished)+.5)*w.unit - w.slack()
}

// slack returns the tolerance for changes of the gauge by other causes.
func (w *streamGauge) slack() float64 { return w.unit * max(1, float64(w.vanished)/20) }

// fallText formats fallTime.
func (w *streamGauge) fallText(share float64) string {
	if d, ok := w.fallTime(share); ok {
		return format.Duration(d.Round(time.Second))
	}
	return "–"
}

// minUnit is the minimum increase per stream of a gauge of open streams.
const minUnit = .95

func (w *streamGauge) isGauge() bool {
	return w.sampled && !w.counter && w.unit >= minUnit && w.drift < w.slack() && !w.hasRisen() && !w.isStale()
}

// maxGap is the maximum time without a reading before the end.
const maxGap = 10 * time.Second

// isStale reports whether there were no readings at the end.
func (w *streamGauge) isStale() bool { return len(w.readings) == 0 || w.limit-w.lastAt() > maxGap }

// lastAt returns the time of the last reading after clients vanished.
func (w *streamGauge) lastAt() time.Duration {
	if n := len(w.readings); n > 0 {
		return w.readings[n-1].after
	}
	return 0
}

// hasRisen reports whether the gauge rose after clients vanished, so that it had not been read while all streams were
// open.
func (w *streamGauge) hasRisen() bool {
	tolerance := w.slack()
	if w.unit < minUnit {
		tolerance = minUnit
	}
	return slices.ContainsFunc(w.readings, func(r reading) bool { return r.value >= w.before+tolerance })
}

// checkGauge returns the check that the gauge counts the open streams. An unmet check turns a pass into invalid.
func (w *streamGauge) checkGauge() verdict.Check {
	c := check(CheckGauge, "the gauge counts the streams", "1 per stream", sentence("%v without streams, %v with all streams", w.base, w.before), w.isGauge())
	if !w.sampled {
		c.Actual = "not known"
	}
	var reason string
	switch {
	case c.Pass:
		return c.Inconclusive()
	case w.name == "":
		reason = "the gauge is unknown: for a described service, set GAUGE to a metric of BACKEND_URL/metrics, or to PromQL with PROMETHEUS_URL"
	case !w.sampled:
		reason = fmt.Sprintf("the gauge %s has no samples; set GAUGE to a metric of BACKEND_URL/metrics, or to PromQL with PROMETHEUS_URL", w.name)
	case w.counter:
		reason = counterReason(w.name, "the streams that are open")
	case w.isStale():
		reason = sentence("the gauge %s was last read %v before the end, so its last value is unknown", w.name, w.limit-w.lastAt())
	case w.hasRisen():
		reason = sentence("the gauge %s was %v when the clients vanished, and rose afterwards: other clients use the service, or the gauge is read too seldom; "+
			"set STEADY_SECONDS above the scrape interval of Prometheus", w.name, w.before)
	case w.unit < minUnit:
		reason = sentence("the gauge %s does not count the streams: it went from %v to %v while they opened", w.name, w.base, w.before)
	default:
		reason = sentence("the gauge %s changed by %v right before the clients vanished: other clients use the service, or the gauge is read too seldom", w.name, w.drift)
	}
	c.Reasons = []string{reason}
	return c.Inconclusive()
}

func (w *streamGauge) checkAllVanished() verdict.Check {
	return checkTreated(CheckVanished, "clients vanished", w.vanished, w.planned,
		"only %v of %v clients vanished: the streams of the others were not open, or this system does not support it (see the log of k6)")
}

func (w *streamGauge) checkNoticed() verdict.Check {
	_, ok := w.fallTime(1)
	last := w.last()
	c := check(CheckNoticed, "vanished clients noticed", sentence("all within %v", w.limit), "after "+w.fallText(1), ok)
	switch {
	case ok:
	case !w.isGauge() || w.vanished == 0:
		c.Actual = "not known"
		return c.Inconclusive()
	case last < w.lowerBound():
		c.Actual = "not known"
		c.Reasons = []string{sentence("the gauge %s fell by %v, but only %v clients had vanished: it does not count all streams, or other clients use the service",
			w.name, w.before-last, w.vanished)}
		return c.Inconclusive()
	default:
		counted := max(float64(w.vanished)-(w.before-last)/w.unit, 0)
		c.Actual = count(counted) + " still counted"
		c.Reasons = []string{sentence("%v after %v clients had vanished the service still counts %v of them as open (%s): TCP itself gives up after some "+
			"15 minutes; set TCP_USER_TIMEOUT, or net.ipv4.tcp_retries2 on its machine", w.limit, w.vanished, counted, w.name)}
	}
	return c
}

// maxReadings limits the rows of a table of readings.
const maxReadings = 30

// table returns the readings at which the gauge changed, and the last one.
func (w *streamGauge) table() verdict.Table {
	t := newTable("The gauge after clients vanished", cmp.Or(w.name, "not known")+", read once a second, or as often as Prometheus scrapes it", "seconds after|gauge")
	t.Add("before", count(w.before))
	last := w.before
	for i, r := range w.readings {
		if len(t.Rows) < maxReadings && (r.value != last || i == len(w.readings)-1) {
			t.Add(row(r.after.Seconds(), r.value)...)
		}
		last = r.value
	}
	return t
}
