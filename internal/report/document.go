package report

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Run has the data of report.html.
type Run struct {
	Verdict *verdict.Verdict
	Merged  *shard.Merged
	Samples []resources.Sample
	Provenance
	Comparison Section // comparison with earlier runs; empty without such runs
	Files      []File
}

// Provenance has the command, the versions and the machine of a run, as in run.json. Each field may be empty.
type Provenance struct {
	Command  []string          `json:"command"`
	Version  string            `json:"version"`           // version of soak
	Commit   string            `json:"commit,omitempty"`  // commit of that version
	Go       string            `json:"go,omitempty"`      // version of Go
	OneClock bool              `json:"one_clock"`         // soak started the target, so target and runners are on one host
	Nginx    string            `json:"nginx,omitempty"`   // version of nginx
	Cores    string            `json:"cores,omitempty"`   // cores reserved for the service and the runners, or why none are
	Proxies  []string          `json:"proxies,omitempty"` // proxies that the runners used, without credentials
	Backend  string            `json:"backend,omitempty"` // version of the backend of this repository, if it is the target
	Machine  resources.Machine `json:"machine"`           // machine that ran `soak run`
	Limits   preflight.Machine `json:"limits"`            // limits of that machine
	// ResourcesFrom is the Prometheus server that the samples come from; "": soak recorded them.
	ResourcesFrom string `json:"resources_from,omitempty"`
}

// Brief returns the document of a verdict: report.txt and report.md.
func Brief(v *verdict.Verdict) *Page {
	p := &Page{Title: v.TestID, Generator: "soak report", Banner: banner(v)}
	p.add(figures(v), checks(v), actions(v), suiteTables(v), windows(v), machines(v), runnersOf(v), runInfo(v))
	return p
}

func (p *Page) add(list ...Section) {
	for _, s := range list {
		if !s.empty() || len(s.Notes) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
}

func suiteTables(v *verdict.Verdict) Section {
	out := Section{ID: "results", Title: "Results"}
	for _, t := range v.Tables {
		out.Tables = append(out.Tables, tableOf(t))
	}
	if t, ok := topics(v, maxTopics); ok {
		out.Tables = append(out.Tables, t)
	}
	return out
}

// A pageBuilder builds the page of a run of any suite. It has the data that several sections read.
type pageBuilder struct {
	*Run
	v      *verdict.Verdict
	series *series
	phases phases
	bands  []Band
}

func newPageBuilder(r *Run) *pageBuilder {
	s := &pageBuilder{Run: r, v: r.Verdict, phases: phasesOf(r.Merged, r.Verdict)}
	s.bands = s.phases.bands()
	if s.v.Layout.Declared {
		s.bands = stages(s.v)
	}
	s.series = newSeries(r.Merged, r.Samples, r.Machine.Cores)
	return s
}

// sections maps the names that suites use for the sections of a page (verdict.Layout) to functions.
var sections = map[string]func(*pageBuilder) Section{
	"checks": func(s *pageBuilder) Section { return checks(s.v) }, "actions": func(s *pageBuilder) Section { return actions(s.v) },
	"machines": func(s *pageBuilder) Section { return machines(s.v) }, "windows": func(s *pageBuilder) Section { return windows(s.v) }, "comparison": func(s *pageBuilder) Section { return s.Comparison },
	"data": (*pageBuilder).data,
	// sections of soaks
	"plan": (*pageBuilder).card, "account": (*pageBuilder).account, "published": (*pageBuilder).publishedSection, "timelines": (*pageBuilder).timelines, "lateness": (*pageBuilder).lateness, "leaks": (*pageBuilder).leaks,
	"ends": (*pageBuilder).ends, "teardown": (*pageBuilder).teardown, "arithmetic": (*pageBuilder).arithmetic, "headroom": (*pageBuilder).headroom,
	// sections of other suites
	"results": (*pageBuilder).suiteTables, "curves": (*pageBuilder).curves, "settings": (*pageBuilder).suiteCard, "processes": (*pageBuilder).suiteTimelines,
	"responses": (*pageBuilder).responses,
}

// Full returns the document of a run with its charts: report.html.
func Full(r *Run) *Page { return newPageBuilder(r).page() }

// page returns the page with the sections that the suite names. In a run that passed, the charts come first.
func (s *pageBuilder) page() *Page {
	p := &Page{
		Title: fmt.Sprintf("%s %s", s.v.TestID, s.v.Verdict), Generator: "soak report", Banner: banner(s.v),
		Time: Axis{From: s.series.from, Step: s.series.step, N: s.series.n, Bands: s.bands, Lines: s.lines()}, Files: s.Files,
	}
	if p.Banner.Tiles = s.tiles(); s.v.Layout.Declared {
		p.Banner.Tiles = s.metricTiles()
	}
	charts := &Page{}
	p.add(s.incidentSection())
	for _, name := range s.v.Layout.Page {
		dest := p
		if isChart := name == "timelines" || name == "processes" || name == "curves" || name == "responses"; isChart && s.v.Verdict == verdict.Pass {
			dest = charts
		}
		dest.add(sections[name](s))
	}
	p.Sections = append(charts.Sections, p.Sections...)
	return p
}

func (s *pageBuilder) data() Section {
	out := Section{ID: "data", Title: "Files of the run", Short: "Files"}
	for _, f := range s.Files {
		out.Downloads = append(out.Downloads, f.Name)
	}
	if len(out.Downloads) > 0 {
		out.Notes = []string{"This page contains these files. The folder of the run contains them too, and also the logs and the shards (result files) of the runners."}
	}
	return out
}

func (s *pageBuilder) lines() (out []Line) {
	for i := range s.v.Actions {
		if a := &s.v.Actions[i]; a.Started() {
			out = append(out, Line{Name: a.Name, At: a.StartedUnix})
		}
	}
	return out
}

// nouns returns the word for the messages of the service, capitalized if it is the first word of a sentence.
func (s *pageBuilder) nouns(first bool) string {
	noun := s.v.Service.Noun() + "s"
	if first {
		return strings.ToUpper(noun[:1]) + noun[1:]
	}
	return noun
}
