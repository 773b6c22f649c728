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
	Short:  "let clients vanish without closing streams, and measure when the service notices",
	Script: []string{"load-tests", "sse", "vanish.js"},
	Target: Target{Kind: Direct, Streams: true},
	Page:   Page{Doc: "docs/suites.md", Ended: "vanished"},
	Plan: Plan{BySettings: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=1000", "SECONDS=132", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=100", "SECONDS=41", "NOOP_INTERVAL=1"},
	}},
	Assess:    assessVanish,
	Disturbed: (*Run).isSelected,
}

func assessVanish(r *Run) verdict.Assessment {
	m, open := r.Rounds[0], r.streamsOf(r.isNotSelected)
	g := r.streamGauge(m)
	a := verdict.Assessment{
		Streams: open, Warnings: open.Warnings,
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, open.FaultChecks(), open.AgreementChecks(),
			[]verdict.Check{r.checkBystanders(open), g.checkAllVanished(), g.checkGauge(), g.checkNoticed()}),
		Facts: append([]verdict.Fact{
			{Name: "vanished", Value: sentence("%v of %v clients, at once", g.vanished, m.Plan.Connections)},
			{Name: "noticed", Value: g.noticedText()},
		}, streamFacts(open, m)...),
		Passed: []string{fmt.Sprintf("the service noticed after %s that %s had vanished", g.fallText(1), format.Count(g.vanished, "client"))},
		Tables: []verdict.Table{g.table()},
	}
	if !m.Service.Backend {
		a.Facts = append(a.Facts, verdict.Fact{Name: "unknown", Value: "whether the service released the memory of vanished clients, because only its gauge is available"})
	}
	if at, ok := g.fallTime(1); ok {
		a.Metrics = []verdict.Metric{{Name: "noticed", Unit: "s", Value: at.Seconds()}}
	}
	return a
}

// A streamGauge holds values of the service's gauge of open streams before and after clients vanished.
type streamGauge struct {
	name              string        // "" if GAUGE is not set, and the service is not our backend
	planned, vanished int           // streams
	limit             time.Duration // time in which the service must notice that clients vanished
	base, before      float64       // value without streams, and with all of them
	drift             float64       // change in settleTime before clients vanished
	unit              float64       // increase per stream
	hasSamples        bool          // there are enough samples from before clients vanished
	isCounter         bool          // GAUGE is a counter
	readings          []reading     // readings after clients vanished, up to limit
	undisturbed       int           // streams that did not vanish, and ended with the run
	end               *float64      // last value after limit; nil: not known
}

// A reading is a value of a gauge at a time after the start of a phase.
type reading struct {
	elapsed time.Duration
	value   float64
}

// settleTime is the time before clients vanish in which the gauge must not change.
const settleTime = 2 * time.Second

// streamGauge evaluates the samples of the gauge. A sample counts at the end of its second.
func (r *Run) streamGauge(m *shard.Merged) (g streamGauge) {
	drops := sumsByStage(m, "vanish_vanished")["vanished"]
	g = streamGauge{name: r.parameter("GAUGE"), vanished: int(drops.Sum), limit: r.duration("NOTICE_SECONDS", time.Second)}
	if m.Service.Backend {
		g.name = cmp.Or(g.name, "backend_streams_open")
	}
	for _, st := range stagesOf(m) {
		g.planned = st.Requests
	}
	g.undisturbed, g.isCounter = max(m.Plan.Connections-g.vanished, 0), r.counterGauge()
	vanishedAt := time.UnixMicro(drops.FirstUS)
	lowest, highest, hasBase := math.Inf(1), math.Inf(-1), false
	for i, s := range r.Samples {
		v, ok := gaugeOf(s, r.parameter("GAUGE"))
		at := endOf(s)
		switch elapsed := at.Sub(vanishedAt); {
		case !ok:
		case i == 0:
			g.base, hasBase = v, true
		case elapsed <= 0:
			g.before, g.hasSamples = v, true
			if elapsed > -settleTime {
				lowest, highest = min(lowest, v), max(highest, v)
			}
		case elapsed <= g.limit:
			g.readings = addReading(g.readings, reading{elapsed, v})
		default:
			g.end = &v
		}
	}
	g.drift = max(highest-lowest, 0)
	g.unit = (g.before - g.base) / float64(max(m.Plan.Connections, 1))
	g.hasSamples = g.hasSamples && (hasBase || g.unit <= 1) // without a base, a higher value may include other streams
	return g
}

// gaugeOf returns the value of the gauge in a sample; without a name, the number of open streams of our own backend.
func gaugeOf(s resources.Sample, name string) (v float64, ok bool) {
	switch {
	case name == "":
		return float64(s.Streams), s.BackendRSS > 0
	case s.Gauge == nil:
		return 0, false
	}
	return *s.Gauge, true
}

// fallTime returns the time from which the gauge stayed lower by at least the given share of the vanished clients. ok
// is false if there is no such time, if the gauge is unusable, or if its last reading is below lowerBound. A low
// reading before a higher one does not count: it may come from a part of the service, or from a restart.
func (g *streamGauge) fallTime(share float64) (elapsed time.Duration, ok bool) {
	if !g.isConclusive() {
		return 0, false
	}
	threshold := g.before - (math.Ceil(share*float64(g.vanished))-.5)*g.unit
	for _, r := range slices.Backward(g.readings) {
		if r.value > threshold {
			break
		}
		if r.value >= g.lowerBound() {
			elapsed, ok = r.elapsed, true
		}
	}
	return elapsed, ok
}

// isConclusive reports whether the gauge can show when the service noticed the vanished clients.
func (g *streamGauge) isConclusive() bool {
	return g.isGauge() && g.vanished > 0 && g.lastReading().value >= g.lowerBound()
}

func (g *streamGauge) lastReading() reading {
	if n := len(g.readings); n > 0 {
		return g.readings[n-1]
	}
	return reading{value: g.before}
}

// lowerBound returns the lowest possible value while the other streams are open. A lower value means that the gauge
// does not count all streams, or that other clients of the service have disconnected.
func (g *streamGauge) lowerBound() float64 {
	return g.before - (float64(g.vanished)+.5)*g.unit - g.slack()
}

// slack returns the tolerance for changes of the gauge that have other causes.
func (g *streamGauge) slack() float64 { return g.unit * max(1, float64(g.vanished)/20) }

func (g *streamGauge) fallText(share float64) string {
	if d, ok := g.fallTime(share); ok {
		return format.Duration(d.Round(time.Second))
	}
	return "–"
}

func (g *streamGauge) noticedText() string {
	if !g.isConclusive() {
		return "not known"
	}
	text := fmt.Sprintf("half of them after %s, 99 %% after %s, all after %s", g.fallText(.5), g.fallText(.99), g.fallText(1))
	if _, ok := g.fallTime(1); ok {
		return text
	}
	if _, ok := g.fallTime(.5); ok {
		return text + sentence(" (–: not within %v)", g.limit)
	}
	return sentence("fewer than half of them within %v", g.limit)
}

// minUnit is the minimum increase per stream of a gauge of open streams.
const minUnit = .95

// isGauge reports whether the gauge counts the open streams, and no other cause changed it.
func (g *streamGauge) isGauge() bool {
	return g.hasSamples && !g.isCounter && g.unit >= minUnit && g.drift < g.slack() && !g.hasRisen() && !g.isStale()
}

// maxGap is the maximum time from the last reading to the limit.
const maxGap = 10 * time.Second

func (g *streamGauge) isStale() bool {
	return len(g.readings) == 0 || g.limit-g.lastReading().elapsed > maxGap
}

// hasRisen reports whether the gauge rose after clients vanished. This shows that the gauge was not read while all
// streams were open, or that other clients connected.
func (g *streamGauge) hasRisen() bool {
	tolerance := g.slack()
	if g.unit < minUnit {
		tolerance = minUnit
	}
	return slices.ContainsFunc(g.readings, func(r reading) bool { return r.value >= g.before+tolerance })
}

func (g *streamGauge) checkGauge() verdict.Check {
	c := check(CheckGauge, "the gauge counts the streams", "1 per stream", sentence("%v without streams, %v with all streams", g.base, g.before), g.isGauge())
	if !g.hasSamples {
		c.Actual = "not known"
	}
	var reason string
	switch {
	case c.Pass:
		return c.AsDoubt()
	case g.name == "":
		reason = "the gauge is unknown: for a described service, set GAUGE to a metric of BACKEND_URL/metrics, or to PromQL with PROMETHEUS_URL"
	case !g.hasSamples:
		reason = fmt.Sprintf("the gauge %s has no samples from before the streams opened, or from before the clients vanished; set GAUGE to a metric of BACKEND_URL/metrics, or to PromQL with PROMETHEUS_URL", g.name)
	case g.isCounter:
		reason = counterReason(g.name, "the streams that are open")
	case g.isStale():
		reason = sentence("the gauge %s was last read %v before NOTICE_SECONDS had passed, so its last value is unknown", g.name, g.limit-g.lastReading().elapsed)
	case g.hasRisen():
		reason = sentence("the gauge %s was %v when the clients vanished, and rose afterward: other clients use the service, or the gauge is read too seldom; "+
			"set STEADY_SECONDS above the scrape interval of Prometheus", g.name, g.before)
	case g.unit < minUnit:
		reason = sentence("the gauge %s does not count the streams: it went from %v to %v while they opened", g.name, g.base, g.before)
	default:
		reason = sentence("the gauge %s changed by %v right before the clients vanished: other clients use the service, or the gauge is read too seldom", g.name, g.drift)
	}
	c.Reasons = []string{reason}
	return c.AsDoubt()
}

func (g *streamGauge) checkAllVanished() verdict.Check {
	return checkDisturbed(CheckVanished, "clients vanished", g.vanished, g.planned,
		"only %v of %v clients vanished: the streams of the others were not open, or this system cannot make clients vanish (see the log of k6)")
}

func (g *streamGauge) checkNoticed() verdict.Check {
	_, ok := g.fallTime(1)
	last := g.lastReading().value
	c := check(CheckNoticed, "vanished clients noticed", sentence("all within %v", g.limit), "after "+g.fallText(1), ok)
	switch {
	case ok:
	case !g.isGauge() || g.vanished == 0:
		c.Actual = "not known"
		return c.AsDoubt()
	case last < g.lowerBound():
		c.Actual = "not known"
		c.Reasons = []string{sentence("the gauge %s fell by %v, but only %s had vanished: it does not count all streams, or other clients use the service",
			g.name, g.before-last, format.Count(g.vanished, "client"))}
		return c.AsDoubt()
	default:
		counted := max(float64(g.vanished)-(g.before-last)/g.unit, 0)
		c.Actual = count(counted) + " still counted"
		cause := "TCP itself gives up after about 15 minutes; set TCP_USER_TIMEOUT, or net.ipv4.tcp_retries2 on the machine of the service"
		if g.end != nil && g.before-*g.end < g.unit*float64(g.undisturbed)/2 {
			cause = sentence("when the other streams had ended, the gauge was still %v, so it does not fall when a stream ends, or it is read too seldom", *g.end)
		}
		c.Reasons = []string{sentence("%v after %s had vanished, the service still counted %v of them as open (%s): %s", g.limit, format.Count(g.vanished, "client"), counted, g.name, cause)}
	}
	return c
}

// addReading appends a reading. It replaces the last one if both have the same time, because the final sample of a run
// may be from the same second as the one before it.
func addReading(readings []reading, r reading) []reading {
	if n := len(readings); n > 0 && readings[n-1].elapsed == r.elapsed {
		readings = readings[:n-1]
	}
	return append(readings, r)
}

const maxReadings = 30

func selectReadings(readings []reading) (out []reading) {
	step := (len(readings) + maxReadings - 1) / maxReadings
	for i, r := range readings {
		if i%step == step-1 || i == len(readings)-1 {
			out = append(out, r)
		}
	}
	return out
}

func (g *streamGauge) table() verdict.Table {
	t := newTable("The gauge after clients vanished", cmp.Or(g.name, "not known")+", read once a second, or as often as Prometheus scrapes it", "seconds after|gauge")
	t.Add("before", count(g.before))
	last, changes := g.before, []reading(nil)
	for i, r := range g.readings {
		if r.value != last || i == len(g.readings)-1 {
			changes = append(changes, r)
		}
		last = r.value
	}
	for _, r := range selectReadings(changes) {
		t.Add(row(r.elapsed.Seconds(), r.value)...)
	}
	return t
}
