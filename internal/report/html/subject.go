package html

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A subject is a run of any kind, and what several sections of its page read.
type subject struct {
	*Run
	v      *verdict.Verdict
	series *series
	phases phases
	bands  []Band
	spikes []spike
}

func newSubject(r *Run) *subject {
	s := &subject{Run: r, v: r.Verdict, phases: phasesOf(r.Merged, r.Verdict)}
	s.bands = s.phases.bands()
	if s.v.Layout.Declared {
		s.bands = stages(s.v)
	}
	s.series = newSeries(r.Merged, r.Samples, r.Machine.Cores)
	s.spikes = s.findSpikes()
	return s
}

// sections are those of a page by the names that suites have for them (verdict.Layout).
var sections = map[string]func(*subject) Section{
	"checks": (*subject).checks, "actions": (*subject).actions, "machines": (*subject).machines, "spikes": (*subject).spikeTable, "comparison": (*subject).comparison, "data": (*subject).data,
	// what was planned, and what was counted
	"plan": (*subject).card, "account": (*subject).account, "published": (*subject).published, "timelines": (*subject).timelines, "lateness": (*subject).lateness, "leaks": (*subject).leaks,
	"ends": (*subject).ends, "teardown": (*subject).teardown, "arithmetic": (*subject).arithmetic, "headroom": (*subject).headroom,
	// what the script declared, and what it found
	"found": (*subject).suiteTables, "curves": (*subject).curves, "settings": (*subject).suiteCard, "processes": (*subject).suiteTimelines,
}

// page puts the sections of the run's suite together; one that has nothing to say is left out.
func (s *subject) page() *Page {
	p := &Page{
		Title:  fmt.Sprintf("%s %s", s.v.TestID, s.v.Verdict),
		Made:   "soak report",
		Banner: s.banner(),
		Time:   Axis{From: s.series.from, Step: step, N: s.series.n, Bands: s.bands, Lines: s.lines()},
		Files:  s.Files,
	}
	made := []Section{s.story()}
	for _, name := range s.order() {
		made = append(made, sections[name](s))
	}
	for _, one := range made {
		if len(one.Lead)+len(one.Tables)+len(one.Charts)+len(one.Downloads) > 0 {
			p.Sections = append(p.Sections, one)
		}
	}
	return p
}

// order is that of the sections. Of a run that passed people want to see the course, of another one what broke it.
func (s *subject) order() []string {
	if s.v.Verdict != verdict.Pass {
		return s.v.Layout.Page
	}
	drawn := func(name string) bool { return name == "timelines" || name == "processes" || name == "curves" }
	var first, rest []string
	for _, name := range s.v.Layout.Page {
		if drawn(name) {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	return append(first, rest...)
}

// data is what the page was made from, to take away.
func (s *subject) data() Section {
	out := Section{ID: "data", Title: "The data itself", Short: "Data"}
	for _, f := range s.Files {
		out.Downloads = append(out.Downloads, f.Name)
	}
	if len(out.Downloads) > 0 {
		out.Notes = []string{"The page carries these files. They also lie beside it, in the folder of the run, with the runners' shards and logs."}
	}
	return out
}
