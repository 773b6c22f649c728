package html

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/verdict"
)

// suitePage composes the page of any other run than a soak: what its suite found, as sections.
func suitePage(r *Run) *Page {
	s := &soak{Run: r, v: r.Verdict}
	s.series = newSeries(r.Merged, r.Samples, r.Machine.Cores)
	p := &Page{
		Title:  fmt.Sprintf("%s %s %s", s.v.Suite.Name, s.v.TestID, s.v.Verdict),
		Banner: s.suiteBanner(),
		Time:   Axis{From: s.series.from, Step: step, N: s.series.n, Bands: s.stageBands()},
		Files:  r.Files,
	}
	sections := []Section{s.criteria(), s.suiteCard()}
	for i, t := range s.v.Tables {
		sections = append(sections, tableSection(i, t))
	}
	sections = append(sections, s.curves(), s.resourceTimelines(), s.comparison(), s.data())
	for _, made := range sections {
		if len(made.Lead)+len(made.Tables)+len(made.Charts)+len(made.Downloads) > 0 {
			p.Sections = append(p.Sections, made)
		}
	}
	return p
}

// suiteTiles is how many facts the banner shows; the card has all.
const suiteTiles = 4

func (s *soak) suiteBanner() Banner {
	v := s.v
	b := Banner{Word: strings.ToUpper(string(v.Verdict)), Tone: tone(v.Verdict), Name: v.Suite.Name + " " + v.TestID, Reasons: v.Reasons}
	for _, f := range v.Figures[:min(len(v.Figures), suiteTiles)] {
		b.Tiles = append(b.Tiles, Tile{Name: f.Name, Value: strings.TrimSpace(trimmed(f.Value) + " " + strings.TrimPrefix(f.Unit, "requests"))})
	}
	return b
}

// trimmed writes a figure of any size with what people read of it.
func trimmed(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return integer(int(v + .5))
	}
	return fmt.Sprintf("%.3g", v)
}

// suiteCard says what was run, on what, and when.
func (s *soak) suiteCard() Section {
	found := Table{Caption: "What it found"}
	for _, f := range s.v.Facts {
		found.Rows = append(found.Rows, cells(f.Name, f.Value))
	}
	settings := Table{Caption: "Settings"}
	for _, name := range slices.Sorted(maps.Keys(s.v.Suite.Parameters)) {
		settings.Rows = append(settings.Rows, cells(name, s.v.Suite.Parameters[name]))
	}
	run := facts(
		"suite", fmt.Sprintf("%s, profile %s", s.v.Suite.Name, s.v.Suite.Profile),
		"target", s.v.Suite.BackendURL,
		"runners", plural(s.v.Plan.Runners, "k6 process", "k6 processes"),
		"started", date(s.v.StartedUnix), "ended", date(s.v.EndedUnix), "command", strings.Join(s.Command, " "),
		"script", s.script(), "soak", s.Version, "k6", s.k6(), "backend", s.Backend, "nginx", s.Nginx,
		"machine", s.Machine.Name, "system", s.Machine.System, "kernel", s.Machine.Kernel,
		"CPU", coresOf(s.Machine.Cores, s.Machine.CPU), "memory", memoryOf(s.Machine.Memory),
	)
	run.Caption = "The run"
	return Section{ID: "card", Title: "The run", Tables: []Table{found, run, settings}}
}

// tableSection is a table of the suite as a section of its own.
func tableSection(i int, t verdict.Table) Section {
	out := Table{}
	for c, name := range t.Columns {
		out.Columns = append(out.Columns, Column{Name: name, Number: t.Numeric(c)})
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, cells(row...))
	}
	s := Section{ID: fmt.Sprintf("table-%d", i), Title: t.Title, Tables: []Table{out}}
	if t.Note != "" {
		s.Lead = []string{t.Note}
	}
	return s
}

// mostCurves is how many lines of one chart can be told apart.
const mostCurves = 12

// curves are the good answers' times by percentile, a line for each stage.
func (s *soak) curves() Section {
	out := Section{ID: "curves", Title: "Latency by percentile", Short: "Percentiles"}
	chart := &Chart{ID: "quantiles", Kind: Quantile, Title: "Good answers", Note: "both axes logarithmic: the further right, the rarer", Unit: "ms", Wide: true}
	for _, st := range s.v.Suite.Stages {
		h := shard.NewHistogram()
		for _, m := range s.Merged.Metrics {
			if m.Name == shard.RequestDuration && m.Tags[shard.TagStage] == st.Name && m.Tags[shard.TagCode] == shard.CodeOK {
				h.Merge(m.Trend)
			}
		}
		if h.Count() > 0 && len(chart.Series) < mostCurves {
			chart.Series = append(chart.Series, quantiles(st.Title, h))
		}
	}
	if len(chart.Series) > 0 {
		out.Charts = []*Chart{chart}
	}
	return out
}

// stageBands are the stages as phases of the run; they begin when the runners do.
func (s *soak) stageBands() (out []Band) {
	for _, st := range s.v.Suite.Stages {
		from := s.v.StartedUnix + st.Start
		out = append(out, Band{Name: st.Title, From: from, To: min(from+st.Seconds, s.v.EndedUnix)})
	}
	return out
}
