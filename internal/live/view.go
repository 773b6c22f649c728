package live

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// About is what of a run does not change while it goes on.
type About struct {
	Plan     plan.Plan
	Title    string // "soak 20261122-140000"
	Service  shard.Service
	Declared bool          // by the script, which does something to streams or makes requests: see verdict.Layout
	Total    time.Duration // that it takes, about
	Machine  resources.Machine
	// Prometheus is where metrics of the run are, "" where nobody watches; Written says that the runners write theirs there.
	Prometheus string
	Written    bool
}

// A View is the page of a run that this session holds.
type View struct {
	About
	Watch *Watch

	clocks  func() time.Time // nil: time.Now
	mu      sync.Mutex
	started time.Time // zero: not yet
	word    string    // of the banner, once it is not running any more
	says    string
	samples []resources.Sample
	lines   []verdict.Action
	origin  int64 // where the time axis of the last whole page begins
}

// Start says that the runners run now.
func (v *View) Start() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.started.IsZero() {
		v.started = v.now()
	}
}

func (v *View) now() time.Time {
	if v.clocks != nil {
		return v.clocks()
	}
	return time.Now()
}

// Stage says what becomes of the run after it was held: one word for the banner, and a sentence.
func (v *View) Stage(word, sentence string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.word, v.says = word, sentence
}

// Sample takes one of target and host.
func (v *View) Sample(s resources.Sample) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.samples = append(v.samples, s)
}

// Mark draws a line on each chart over time, now.
func (v *View) Mark(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = append(v.lines, verdict.Action{Acted: verdict.Acted{Action: plan.Action{Name: name}, StartedUnix: float64(time.Now().UnixMilli()) / 1000}})
}

// tail is how much of a run a page shows that is not whole: runners settle their buckets within that time.
const tail = settled + 30*time.Second

// Page is the page as it is now: whole, or with the last points of its charts.
func (v *View) Page(whole bool) *html.Live {
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	runners := v.Watch.Runners()
	sum, lateness := total(runners)
	out := &html.Live{Page: html.Page{Title: v.Title}, Links: v.links()}
	out.Banner = v.banner(now, runners, &sum)
	out.Banner.Tiles = v.tiles(&sum, lateness)
	out.Share, out.Clock = v.clock(now)
	timelines, axis, partial := v.timelines(now, whole)
	out.Time, out.Partial = axis, partial
	out.Sections = []html.Section{found(v.Watch), timelines, health(now, runners, v.requests(&sum))}
	return out
}

// total is the sum over all runners, and the lateness of all messages.
func total(all []Runner) (sum shard.Progress, lateness *shard.Histogram) {
	lateness = shard.NewHistogram()
	for i := range all {
		sum.Add(all[i].Progress)
		if all[i].Lateness == nil {
			continue
		}
		if h, err := all[i].Lateness.Unpack(); err == nil {
			lateness.Merge(h)
		}
	}
	return sum, lateness
}

func (v *View) banner(now time.Time, runners []Runner, sum *shard.Progress) html.Banner {
	b := html.Banner{Word: "RUNNING", Tone: html.Neutral, Name: v.Title}
	if v.started.IsZero() {
		b.Word = "STARTING"
	}
	if v.word != "" {
		b.Word = v.word
	}
	soFar, lost := v.soFar(sum)
	b.Reasons = append(b.Reasons, soFar)
	switch {
	case lost:
		b.Tone = html.Bad
	case !v.Service.Counted():
		b.Tone = html.Doubt
	}
	for i := range runners {
		if words, well := runners[i].Health(now); !well {
			b.Reasons = append(b.Reasons, fmt.Sprintf("runner %d: %s", runners[i].Index, words))
			if b.Tone == html.Neutral {
				b.Tone = html.Doubt
			}
		}
	}
	if v.says != "" {
		b.Reasons = append(b.Reasons, v.says)
	}
	return b
}

// soFar is the verdict so far in words: it may become worse, never better. Where streams are lost on purpose only what did
// not come is a loss.
func (v *View) soFar(sum *shard.Progress) (words string, lost bool) {
	if v.requests(sum) {
		return fmt.Sprintf("%s so far", format.Count(int(sum.Requests), "request")), false
	}
	var parts []string
	for _, one := range []struct {
		n    uint64
		what string
	}{
		{sum.Missed(), v.nouns() + " missed"}, {sum.Faults(), v.nouns() + " faulty"},
		{clamp.Uint64(sum.Dropped), "dropped"}, {clamp.Uint64(sum.Refused), "refused"},
	} {
		if one.n > 0 {
			parts = append(parts, format.Thousands(one.n)+" "+one.what)
		}
	}
	lost = sum.Missed()+sum.Faults() > 0 || !v.Declared && len(parts) > 0
	switch {
	case !v.Service.Counted():
		parts = append(parts, "messages are not checked")
	case len(parts) == 0 && sum.Received == 0:
		parts = append(parts, "nothing received yet")
	case len(parts) == 0:
		parts = append(parts, "nothing lost yet")
	}
	if sum.Undecided > 0 {
		parts = append(parts, format.Thousands(sum.Undecided)+" undecided")
	}
	if sum.Reconnected > 0 {
		parts = append(parts, format.Count(sum.Reconnected, "reconnect"))
	}
	return strings.Join(parts, ", "), lost
}

// nouns is the word for messages.
func (v *View) nouns() string { return v.Service.Noun() + "s" }

// requests says that the run makes requests, and holds no streams.
func (v *View) requests(sum *shard.Progress) bool { return v.Plan.Connections == 0 && sum.Opened == 0 }

func (v *View) tiles(sum *shard.Progress, lateness *shard.Histogram) []html.Tile {
	if v.requests(sum) {
		failed := html.Tile{Name: "failed", Value: format.Thousands(sum.Failed)}
		return []html.Tile{{Name: "requests", Value: format.Thousands(sum.Requests), Note: sum.Stage}, failed}
	}
	tone := func(n uint64) html.Tone {
		if n > 0 {
			return html.Bad
		}
		return ""
	}
	count := func(n uint64) string { return format.Thousands(n) }
	late := html.Tile{Name: "lateness p99", Value: "–", Note: "nothing came yet"}
	if lateness.Count() > 0 {
		late.Value, late.Note = milliseconds(lateness.Quantile(.99)), "at most "+milliseconds(lateness.Max())
	}
	planned := ""
	if v.Plan.Connections > 0 {
		planned = "of " + format.Thousands(v.Plan.Connections) + " planned"
	}
	open := html.Tile{Name: "streams open", Value: count(uint64(max(sum.Open, 0))), Note: planned}
	if !v.Service.Counted() {
		return []html.Tile{open, {Name: v.nouns(), Value: "not checked", Note: count(sum.Heartbeats) + " heartbeats", Tone: html.Doubt}}
	}
	missed := html.Tile{Name: v.nouns() + " missed", Value: count(sum.Missed()), Note: fmt.Sprintf("%s faulty", count(sum.Faults())), Tone: tone(sum.Missed() + sum.Faults())}
	if sum.Received+sum.Missed()+sum.Faults() == 0 {
		missed.Value, missed.Note = "–", "nothing was received yet"
	}
	out := []html.Tile{
		open,
		{Name: v.nouns() + " received", Value: count(sum.Received), Note: fmt.Sprintf("%s late", count(sum.Late))},
		missed,
		{Name: "undecided", Value: count(sum.Undecided), Note: "due, and may still come"},
		late,
	}
	if sum.Published > 0 {
		out = append(out, html.Tile{Name: "published", Value: count(sum.Published), Note: count(sum.Confirmed) + " confirmed"})
	}
	return out
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// clock is how far the run is.
func (v *View) clock(now time.Time) (share float64, words string) {
	if v.started.IsZero() {
		return 0, "the runners are being started"
	}
	passed := now.Sub(v.started)
	if v.word != "" || passed > v.Total {
		passed = v.Total
	}
	passed = passed.Truncate(time.Second)
	return min(float64(passed)/float64(max(v.Total, 1)), 1), format.Duration(passed) + " of " + format.Duration(v.Total)
}

// timelines are the charts of the report. One that is not whole begins where a bar of a whole one begins.
func (v *View) timelines(now time.Time, whole bool) (html.Section, html.Axis, bool) {
	width := html.TimelineWindow(max(v.Plan.NoopInterval, .001))
	from := int64(0)
	if !whole && v.origin > 0 {
		from = v.origin + (now.Add(-tail).Unix()-width-v.origin)/width*width
	}
	series, samples := v.Watch.Series(from), v.samples
	partial := from > v.origin && len(series) > 0 && series[0].Unix == from
	if !partial {
		series = v.Watch.Series(0)
	} else {
		i, _ := slices.BinarySearchFunc(samples, from-1, func(s resources.Sample, unix int64) int { return int(s.Unix - unix) })
		samples = samples[i:]
	}
	known := &verdict.Verdict{TestID: v.Plan.TestID, Plan: v.Plan, Actions: v.lines, Counts: verdict.Counts{Service: v.Service}, StartedUnix: float64(v.started.UnixMilli()) / 1000, EndedUnix: float64(now.Unix())}
	section, axis := html.Timelines(&html.Run{
		Verdict: known, Merged: &shard.Merged{Plan: v.Plan, Series: series}, Samples: samples,
		Circumstances: html.Circumstances{Machine: v.Machine},
	}, v.Declared && v.Plan.Connections == 0)
	if !partial {
		v.origin = axis.From
	}
	if len(section.Charts) == 0 {
		section.Lead = []string{"The first points come in some seconds."}
	}
	return section, axis, partial
}

// links lead to the metrics of the run. They have no user and password: whoever may look at the run need not know them.
func (v *View) links() (out []html.Link) {
	at, err := url.Parse(v.Prometheus)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil // there is none, or it is no URL
	}
	base := at.Scheme + "://" + at.Host + strings.TrimSuffix(at.EscapedPath(), "/")
	if v.Written {
		run := fmt.Sprintf("{testid=%q}", v.Plan.TestID)
		for _, metric := range []html.Link{
			{Name: "events that came", URL: "sum by (runner) (rate(k6_sse_event_total" + run + "[1m]))"},
			{Name: "lateness", URL: "k6_soak_lateness_p99_seconds" + run},
			{Name: "memory of the runners", URL: "k6_soak_rss_bytes" + run},
		} {
			query := url.Values{"g0.expr": {metric.URL}, "g0.tab": {"0"}, "g0.range_input": {"1h"}}
			out = append(out, html.Link{Name: metric.Name, URL: base + "/graph?" + query.Encode()})
		}
	}
	return append(out, html.Link{Name: "all it watches", URL: base + "/"})
}
