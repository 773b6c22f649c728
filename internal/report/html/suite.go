package html

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// stages are the bands of timelines where the script declared stages.
func stages(v *verdict.Verdict) (out []Band) {
	for _, stage := range v.Suite.Stages {
		from := v.StartedUnix + stage.Start
		out = append(out, Band{Name: stage.Title, From: from, To: min(from+stage.Seconds, v.EndedUnix), Cause: "the stage " + stage.Title})
	}
	return out
}

// metricTiles are the first metrics.
func (s *subject) metricTiles() (out []Tile) {
	const most = 5
	for _, m := range s.v.Metrics[:min(len(s.v.Metrics), most)] {
		tile := Tile{Name: m.Name, Value: strconv.FormatFloat(m.Value, 'g', 4, 64), Note: m.Unit}
		switch {
		case m.Unit == "ms":
			tile.Value, tile.Note = duration(m.Value), ""
		case m.Value >= 1000:
			tile.Value = format.Thousands(int64(m.Value + .5))
		}
		out = append(out, tile)
	}
	return out
}

func (s *subject) suiteCard() Section {
	of := s.v.Suite
	run := facts("suite", of.Name, "profile", of.Profile, "runners", format.Count(len(s.v.Runners), "k6 process"),
		"target", of.BackendURL+s.v.Redirected(), "started", format.Moment(s.v.StartedUnix), "ended", format.Moment(s.v.EndedUnix), "command", report.Shell(s.Command...))
	run.Caption = "The run"
	out := Section{ID: "card", Title: "The run", Tables: []Table{run, s.host()}}
	if len(of.Parameters) > 0 {
		settings := Table{Caption: "Settings"}
		for _, name := range slices.Sorted(maps.Keys(of.Parameters)) {
			settings.Rows = append(settings.Rows, cells(name, of.Parameters[name]))
		}
		out.Tables = append(out.Tables, settings)
	}
	return out
}

// suiteTables are what the suite found.
func (s *subject) suiteTables() Section {
	out := Section{ID: "found", Title: "What it found"}
	if len(s.v.Facts) > 0 {
		var all Table
		for _, f := range s.v.Facts {
			all.Rows = append(all.Rows, cells(f.Name, f.Value))
		}
		out.Tables = append(out.Tables, all)
	}
	for _, t := range s.v.Tables {
		out.Tables = append(out.Tables, suiteTable(t))
	}
	return out
}

func suiteTable(t verdict.Table) Table {
	out := Table{Caption: t.Title, Note: t.Note, Columns: make([]Column, len(t.Columns))}
	for i, name := range t.Columns {
		out.Columns[i] = Column{Name: name, Number: t.Numeric(i)}
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, cells(row...))
	}
	return out
}

// mostCurves is how many lines of one chart an eye can tell apart.
const mostCurves = 8

// curves are the good answers' times by percentile, a line for each load.
func (s *subject) curves() Section {
	out := Section{ID: "curves", Title: "Latency by percentile", Short: "Percentiles"}
	chart := &Chart{ID: "quantiles", Kind: Quantile, Title: "Good answers", Note: "both axes logarithmic: the further right, the rarer", Unit: "ms", Wide: true}
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
	if all := names; len(all) > mostCurves {
		chart.Note += fmt.Sprintf("; %d of %d loads, the lowest and the highest among them", mostCurves, len(all))
		names = nil
		for i := range mostCurves {
			names = append(names, all[i*(len(all)-1)/(mostCurves-1)])
		}
	}
	for _, name := range names {
		chart.Series = append(chart.Series, quantiles(name, answers[name]))
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
