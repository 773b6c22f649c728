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

func stages(v *verdict.Verdict) (out []Band) {
	for _, stage := range v.Suite.Stages {
		if from := v.StartedUnix + stage.Start; from < v.EndedUnix {
			out = append(out, Band{Name: stage.Title, From: from, To: min(from+stage.Seconds, v.EndedUnix)})
		}
	}
	return out
}

func (s *pageBuilder) metricTiles() (out []Tile) {
	const maxTiles = 5
	for _, m := range s.v.Metrics[:min(len(s.v.Metrics), maxTiles)] {
		tile := Tile{Name: m.Name, Value: format.Quantity(m.Value, m.Unit)}
		if m.Unit != "ms" {
			tile.Value, tile.Note = format.Quantity(m.Value, ""), m.Unit
		}
		out = append(out, tile)
	}
	return out
}

func (s *pageBuilder) suiteCard() Section {
	info := s.v.Suite
	run := Facts("suite", info.Name, "profile", info.Profile, "runners", format.Count(len(s.v.Runners), "k6 process"),
		"target", info.BackendURL+s.v.RedirectText(), "started", format.UnixTime(s.v.StartedUnix), "ended", endTime(s.v), "command", Shell(s.Command...))
	run.Caption = "Run"
	out := Section{ID: "card", Title: "Run", Tables: []Table{run, s.environment()}}
	if len(info.Parameters) > 0 {
		settings := Table{Caption: "Settings"}
		for _, name := range slices.Sorted(maps.Keys(info.Parameters)) {
			settings.Rows = append(settings.Rows, Cells(name, info.Parameters[name]))
		}
		out.Tables = append(out.Tables, settings)
	}
	return out
}

func (s *pageBuilder) suiteTables() Section {
	out := suiteTables(s.v)
	if s.v.Layout.Declared {
		out.Tables = append(figures(s.v).Tables, out.Tables...)
	}
	return out
}

// maxCurves is the number of lines that can be distinguished in one chart.
const maxCurves = 8

// curves returns the latency of good responses by percentile, with a line for each of at most maxCurves loads.
func (s *pageBuilder) curves() Section {
	out := Section{ID: "curves", Title: "Latency by percentile", Short: "Percentiles"}
	chart := &Chart{ID: "quantiles", Kind: Quantile, Title: "Good responses", Note: "both axes are logarithmic; rare values are on the right", Unit: "ms", Wide: true}
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
	if loads := names; len(loads) > maxCurves {
		chart.Note += fmt.Sprintf("; %d of %d loads, the lowest and the highest among them", maxCurves, len(loads))
		names = nil
		for i := range maxCurves {
			names = append(names, loads[i*(len(loads)-1)/(maxCurves-1)])
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

func (s *pageBuilder) suiteTimelines() Section {
	out := Section{ID: "timelines", Title: "Timelines"}
	if s.series.n > 0 {
		s.processes(&out)
	}
	return out
}
