package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// stages returns the bands of timelines if the script declared stages.
func stages(v *verdict.Verdict) (out []Band) {
	for _, stage := range v.Suite.Stages {
		from := v.StartedUnix + stage.Start
		out = append(out, Band{Name: stage.Title, From: from, To: min(from+stage.Seconds, v.EndedUnix)})
	}
	return out
}

// metricTiles returns the first metrics as tiles.
func (s *subject) metricTiles() (out []Tile) {
	const most = 5
	for _, m := range s.v.Metrics[:min(len(s.v.Metrics), most)] {
		tile := Tile{Name: m.Name, Value: format.Quantity(m.Value, m.Unit)}
		if m.Unit != "ms" {
			tile.Value, tile.Note = format.Quantity(m.Value, ""), m.Unit
		}
		out = append(out, tile)
	}
	return out
}

func (s *subject) suiteCard() Section {
	of := s.v.Suite
	run := Facts("suite", of.Name, "profile", of.Profile, "runners", format.Count(len(s.v.Runners), "k6 process"),
		"target", of.BackendURL+s.v.Redirected(), "started", format.LocalTime(s.v.StartedUnix), "ended", format.LocalTime(s.v.EndedUnix), "command", Shell(s.Command...))
	run.Caption = "The run"
	out := Section{ID: "card", Title: "The run", Tables: []Table{run, s.madeWith()}}
	if len(of.Parameters) > 0 {
		settings := Table{Caption: "Settings"}
		for _, name := range slices.Sorted(maps.Keys(of.Parameters)) {
			settings.Rows = append(settings.Rows, Cells(name, of.Parameters[name]))
		}
		out.Tables = append(out.Tables, settings)
	}
	return out
}

// suiteTables returns what the suite found.
func (s *subject) suiteTables() Section {
	out := suiteTables(s.v)
	if all := figures(s.v); s.v.Layout.Declared {
		out.Tables = append(all.Tables, out.Tables...)
	}
	return out
}

// maxCurves is the number of lines that can be distinguished in one chart.
const maxCurves = 8

// curves returns the times of good responses by percentile, a line for each load.
func (s *subject) curves() Section {
	out := Section{ID: "curves", Title: "Latency by percentile", Short: "Percentiles"}
	chart := &Chart{ID: "quantiles", Kind: Quantile, Title: "Good answers", Note: "both axes are logarithmic; rare values are on the right", Unit: "ms", Wide: true}
	var names []string
	answers := map[string]*shard.Histogram{}
	for _, st := range s.v.Suite.Stages {
		name := suite.Curve(st)
		for _, m := range s.Merged.Metrics {
			if name == "" || m.Name != shard.RequestDuration || m.Tags[shard.TagStage] != st.Name || m.Tags[shard.TagCode] != shard.CodeOK {
				continue
			}
			if answers[name] == nil {
				names, answers[name] = append(names, name), shard.NewHistogram()
			}
			answers[name].Merge(m.Trend)
		}
	}
	if all := names; len(all) > maxCurves {
		chart.Note += fmt.Sprintf("; %d of %d loads, the lowest and the highest among them", maxCurves, len(all))
		names = nil
		for i := range maxCurves {
			names = append(names, all[i*(len(all)-1)/(maxCurves-1)])
		}
	}
	for _, name := range names {
		chart.Series = append(chart.Series, percentiles(name, answers[name]))
	}
	if len(chart.Series) > 0 {
		out.Charts = []*Chart{chart}
	}
	return out
}

func (s *subject) suiteTimelines() Section {
	out := Section{ID: "timelines", Title: "Timelines"}
	if s.series.n > 0 {
		s.processes(&out)
	}
	return out
}
