package live

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A View renders the live page of a run that this session controls.
type View struct {
	Header
	Watch *Watch

	clock   func() time.Time // nil: time.Now
	mu      sync.Mutex
	started time.Time // zero: not yet
	word    string    // word of the banner after the runners were stopped or have ended; "": not yet
	note    string    // sentence below the banner
	samples []resources.Sample
	markers []verdict.Action

	charts   report.Section
	axis     report.Axis
	nextDraw time.Time // time of the next update of the charts
}

// Start records the start of the runners. A further call has no effect.
func (v *View) Start(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.started = cmp.Or(v.started, at)
}

func (v *View) now() time.Time {
	if v.clock != nil {
		return v.clock()
	}
	return time.Now()
}

// Stage sets the word of the banner and a sentence, when the runners are stopped or have ended.
func (v *View) Stage(word, sentence string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.word, v.note = word, sentence
}

// Sample adds a sample of target and host.
func (v *View) Sample(s resources.Sample) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.samples = append(v.samples, s)
}

// Mark adds a line at the current time to each chart over time.
func (v *View) Mark(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := float64(v.now().UnixMilli()) / 1000
	v.markers = append(v.markers, verdict.Action{ActionResult: verdict.ActionResult{Action: plan.Action{Name: name}, StartedUnix: at}})
	v.nextDraw = time.Time{}
}

// Page returns the current page.
func (v *View) Page() *html.LivePage {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := state{Header: &v.Header, now: v.now(), started: v.started, word: "RUNNING", runners: v.Watch.Runners()}
	if v.started.IsZero() {
		s.word = "STARTING"
	}
	if v.word != "" {
		s.word = v.word
		if end := s.started.Add(v.Total); s.now.After(end) {
			s.now = end
		}
	}
	if v.note != "" {
		s.notes = []string{v.note}
	}
	findings, count, unlisted := v.Watch.Findings(0)
	slices.Reverse(findings)
	s.findings, s.omitted = findings, count+unlisted-len(findings)
	page := s.page()
	v.draw(v.now())
	page.Sections[1], page.Time = v.charts, v.axis
	return page
}

// redrawDivisor limits the cost of a long run: the charts are drawn again after at least 1/redrawDivisor of the elapsed
// time.
const redrawDivisor = 200

func (v *View) draw(now time.Time) {
	if len(v.charts.Charts) > 0 && now.Before(v.nextDraw) {
		return
	}
	merged := &shard.Merged{Plan: v.Plan, Responses: v.Watch.Responses()}
	merged.Series, merged.Points = v.Watch.Series()
	_, width := merged.Timeline()
	v.nextDraw = now.Add(max(width, now.Sub(v.started)/redrawDivisor)).Truncate(width)
	partial := &verdict.Verdict{
		TestID: v.Plan.TestID, Plan: v.Plan, Actions: v.markers, Counts: verdict.Counts{Service: v.Service}, Layout: verdict.Layout{Declared: v.Declared},
		StartedUnix: float64(v.started.UnixMilli()) / 1000, EndedUnix: float64(now.UnixMilli()) / 1000,
	}
	v.charts, v.axis = report.Timelines(&report.Run{
		Verdict: partial, Merged: merged, Samples: v.samples,
		Provenance: report.Provenance{Machine: v.Machine},
	})
	if len(v.charts.Charts) == 0 {
		v.charts.Lead = []string{"The first points appear within a few seconds."}
	}
}
