package suite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var vanish = Suite{
	Name:   "vanish",
	Short:  "let clients disappear without a word, and see after how long the service notices",
	Script: []string{"load-tests", "sse", "vanish.js"},
	Settings: []Setting{
		{"VANISH_PERCENT", "share of the streams that vanishes, 1 to 50 percent (default: 20)"},
		{"STEADY_SECONDS", "seconds for which all are open before some vanish: with PROMETHEUS_URL more than its scrape interval (default: 2)"},
		{"GAUGE", "the service's gauge of open streams: a metric of BACKEND_URL/metrics, or PromQL with PROMETHEUS_URL (default: that of our backend)"},
		heldSetting,
	},
	Target: Target{Kind: Direct, Streams: true},
	Page:   Page{Doc: "docs/suites.md", Ended: "vanished"},
	Plan: Plan{Known: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=1000", "SECONDS=132", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=100", "SECONDS=41", "NOOP_INTERVAL=1"},
	}},
	Assess: assessVanish,
}

func assessVanish(r *Run) verdict.Assessment {
	m, every := r.Rounds[0], r.every()
	held := r.held(m, func(n int) bool { return n%every != 0 })
	w := r.watched(m)
	a := verdict.Assessment{
		Streams: held, Warnings: held.Warnings,
		Checks: slices.Concat([]verdict.Check{everyStream(m)}, faultsOf(held), held.Agreement(), []verdict.Check{r.kept(held), w.allVanished(), w.counts(), w.noticed()}),
		Facts: append([]verdict.Fact{
			{Name: "vanished", Value: fmt.Sprintf("%s of %s clients, at once", format.Thousands(w.vanished), format.Thousands(m.Plan.Connections))},
			{Name: "noticed", Value: fmt.Sprintf("half of them after %s, 99 %% after %s, all after %s", w.after(.5), w.after(.99), w.after(1))},
		}, streamFacts(held, m)...),
		Passed: []string{fmt.Sprintf("the service noticed after %s that %s had vanished", w.after(1), format.Count(w.vanished, "client"))},
		Tables: []verdict.Table{w.table()},
	}
	if !m.Service.Backend {
		a.Facts = append(a.Facts, verdict.Fact{Name: "not known", Value: "whether the service gave back what it kept for who is gone: its gauge is its word"})
	}
	if at, ok := w.in(1); ok {
		a.Metrics = []verdict.Metric{{Name: "noticed", Unit: "s", Value: at.Seconds()}}
	}
	return a
}

// A watched gauge is what the service said of its open streams while clients vanished.
type watched struct {
	name              string // "": none was named
	planned, vanished int    // streams
	limit             time.Duration
	base, before      float64   // without streams, and with all of them
	moved             float64   // by itself, right before they vanished
	unit              float64   // by how much it rises with a stream
	known             bool      // there were samples before they vanished
	counter           bool      // it never falls
	at                []reading // afterwards
}

type reading struct {
	after time.Duration
	value float64
}

// steady is for how long the gauge is looked at right before clients vanish.
const steady = 2 * time.Second

// watched reads the samples. They are a second wide: a reading is noted when its second is over.
func (r *Run) watched(m *shard.Merged) (w watched) {
	drops := sumsByStage(m, "vanish_vanished")["vanished"]
	w = watched{name: m.Suite.Parameters["GAUGE"], vanished: int(drops.Sum), limit: time.Duration(r.number("NOTICE_SECONDS")) * time.Second}
	if m.Service.Backend {
		w.name = cmp.Or(w.name, "backend_streams_open")
	}
	for _, st := range stagesOf(m) {
		w.planned = st.Requests
	}
	w.counter = r.watchesCounter()
	gone := time.UnixMicro(drops.FirstUS)
	least, most := math.Inf(1), math.Inf(-1)
	for i, s := range r.Samples {
		v, ok := gaugeOf(s, m.Suite.Parameters["GAUGE"])
		at := time.Unix(s.Unix+1, 0)
		switch after := at.Sub(gone); {
		case !ok:
		case i == 0:
			w.base = v
		case after <= 0:
			w.before, w.known = v, true
			if after > -steady {
				least, most = min(least, v), max(most, v)
			}
		case after <= w.limit:
			w.at = append(w.at, reading{after, v})
		}
	}
	w.moved = max(most-least, 0)
	w.unit = (w.before - w.base) / float64(max(m.Plan.Connections, 1))
	return w
}

// gaugeOf is the gauge in a sample, that of our own backend where none was named.
func gaugeOf(s resources.Sample, named string) (v float64, ok bool) {
	switch {
	case named == "":
		return float64(s.Streams), s.BackendRSS > 0
	case s.Gauge == nil:
		return 0, false
	}
	return *s.Gauge, true
}

// in is when the gauge had fallen by that share of the clients that vanished, for good: a reading in which a part of the
// service was not seen, or that came while it restarted, is followed by one that says otherwise.
func (w *watched) in(share float64) (after time.Duration, ok bool) {
	if !w.isGauge() || w.vanished == 0 {
		return 0, false
	}
	target := w.before - (math.Ceil(share*float64(w.vanished))-.5)*w.unit
	for _, r := range slices.Backward(w.at) {
		if r.value > target {
			break
		}
		if r.value >= w.least() {
			after, ok = r.after, true
		}
	}
	return after, ok
}

// last is what the gauge said in the end.
func (w *watched) last() float64 {
	if n := len(w.at); n > 0 {
		return w.at[n-1].value
	}
	return w.before
}

// least is what the gauge cannot fall below while the others are held, give or take what it may move by itself. Below that it
// is not of all streams, or others left, too.
func (w *watched) least() float64 {
	return w.before - (float64(w.vanished)+.5)*w.unit - w.slack()
}

// slack is by how much the gauge may move without a reason that is known.
func (w *watched) slack() float64 { return w.unit * max(1, float64(w.vanished)/20) }

// after is in as text.
func (w *watched) after(share float64) string {
	if d, ok := w.in(share); ok {
		return format.Duration(d.Round(time.Second))
	}
	return "–"
}

// Rising with each stream, give or take the twentieth part, is what makes a number a gauge of open streams.
const rises = .95

func (w *watched) isGauge() bool {
	return w.known && !w.counter && w.unit >= rises && w.moved < w.slack() && !w.rose() && !w.fellSilent()
}

// longestUnseen is for how long before the end the gauge may be unseen.
const longestUnseen = 10 * time.Second

// fellSilent says that the gauge was not seen any more in the end.
func (w *watched) fellSilent() bool { return len(w.at) == 0 || w.limit-w.lastAt() > longestUnseen }

// lastAt is when it was seen last, after clients had vanished.
func (w *watched) lastAt() time.Duration {
	if n := len(w.at); n > 0 {
		return w.at[n-1].after
	}
	return 0
}

// rose says that the gauge rose when all streams were open: it had not been read with all of them.
func (w *watched) rose() bool {
	most := w.slack()
	if w.unit < rises {
		most = rises
	}
	return slices.ContainsFunc(w.at, func(r reading) bool { return r.value >= w.before+most })
}

// counts takes a pass back where nobody knows whether the gauge counts the streams.
func (w *watched) counts() verdict.Check {
	c := verdict.Check{
		ID: CheckGauge, Name: "the gauge counts the streams", Limit: "one more for each", Actual: fmt.Sprintf("%s, %s with all streams", count(w.base), count(w.before)), Pass: w.isGauge(),
		Why: "a gauge of something else says nothing of streams",
	}
	switch {
	case c.Pass:
	case w.name == "":
		c.Actual = "not known"
		c.Reasons = []string{"the gauge was never seen: GAUGE has to name that of a described service, a metric of BACKEND_URL/metrics, or PromQL with PROMETHEUS_URL"}
	case !w.known:
		c.Actual = "not known"
		c.Reasons = []string{fmt.Sprintf("the gauge %s was never seen: name one of BACKEND_URL/metrics, or PromQL with PROMETHEUS_URL (GAUGE)", w.name)}
	case w.counter:
		c.Reasons = []string{noCounter(w.name, "the streams that are open")}
	case w.fellSilent():
		c.Reasons = []string{fmt.Sprintf("the gauge %s was last seen %s before the end: what it was then nobody knows", w.name, format.Duration(w.limit-w.lastAt()))}
	case w.rose():
		c.Reasons = []string{fmt.Sprintf("the gauge %s was %s when the clients vanished, and rose after that: it is read too seldom, so let the streams be open before for longer than Prometheus's scrape interval (STEADY_SECONDS), or others use the service too", w.name, count(w.before))}
	case w.unit < rises:
		c.Reasons = []string{fmt.Sprintf("the gauge %s does not count the streams: it went from %s to %s while they opened", w.name, count(w.base), count(w.before))}
	default:
		c.Reasons = []string{fmt.Sprintf("the gauge %s moved by %s right before the clients vanished: others use the service, or it is read too seldom", w.name, count(w.moved))}
	}
	return c.InDoubt()
}

func (w *watched) allVanished() verdict.Check {
	return allOf(CheckVanished, "clients vanished", w.vanished, w.planned, "who did not vanish is not to be missed",
		"clients vanished: the streams of the others were not open, or this system cannot do it (k6's log says)")
}

func (w *watched) noticed() verdict.Check {
	_, ok := w.in(1)
	c := verdict.Check{
		ID: CheckNoticed, Name: "noticed that they vanished", Limit: "all within " + format.Duration(w.limit), Actual: "after " + w.after(1), Pass: ok, Why: "streams of nobody fill the service up",
	}
	switch {
	case ok:
	case !w.isGauge() || w.vanished == 0:
		c.Actual = "not known"
		return c.InDoubt()
	case w.last() < w.least():
		c.Actual = "not known"
		c.Reasons = []string{fmt.Sprintf("the gauge %s fell by %s, and only %s clients had vanished: it was not of all streams, or others used the service, too", w.name, count(w.before-w.last()), format.Thousands(w.vanished))}
		return c.InDoubt()
	default:
		last := w.last()
		believed := max(float64(w.vanished)-(w.before-last)/w.unit, 0)
		c.Actual = count(believed) + " of them still counted"
		c.Reasons = []string{fmt.Sprintf("%s after %s clients had vanished the service still counts %s of them as open (%s): TCP gives up after some 15 minutes by itself; set TCP_USER_TIMEOUT, or net.ipv4.tcp_retries2 on its machine",
			format.Duration(w.limit), format.Thousands(w.vanished), count(believed), w.name)}
	}
	return c
}

// mostReadings bounds the table.
const mostReadings = 30

// table has each reading at which the gauge changed.
func (w *watched) table() verdict.Table {
	t := verdict.Table{Title: "The gauge after clients vanished", Note: cmp.Or(w.name, "not known") + ", read once a second, or as often as Prometheus scrapes it", Columns: []string{"seconds after", "gauge"}}
	t.Add("before", count(w.before))
	last := w.before
	for i, r := range w.at {
		if len(t.Rows) < mostReadings && (r.value != last || i == len(w.at)-1) {
			t.Add(count(r.after.Seconds()), count(r.value))
		}
		last = r.value
	}
	return t
}
