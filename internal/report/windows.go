package report

import (
	"fmt"
	"math"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// windows returns the run by windows: a strip for each figure, and a row for each window. It is empty if the run was one window.
func windows(v *verdict.Verdict) Section {
	out := Section{ID: "windows", Title: "Windows"}
	if len(v.Windows) == 0 {
		return out
	}
	strips := Table{Columns: Columns("figure", "windows", "#highest", "#per hour", "95 % interval, per hour")}
	rows := Table{Columns: Columns("from", "#messages", "#faulty", "#late", "#lateness p99", "#opened", "#closed", "#open at its end", "#backend", "#runners", "#CPU of the runners")}
	for _, f := range []struct {
		name, unit string
		of         func(w *verdict.Window) float64
	}{
		{"faulty messages", "", func(w *verdict.Window) float64 { return float64(w.Faults) }},
		{"late messages", "", func(w *verdict.Window) float64 { return float64(w.Late) }},
		{"lateness p99", "ms", func(w *verdict.Window) float64 { return w.Lateness }},
		{"streams opened", "", func(w *verdict.Window) float64 { return float64(w.Opened) }},
		{"memory of the backend", "MiB", (*verdict.Window).MemoryMiB},
		{"memory of the runners", "MiB", func(w *verdict.Window) float64 { return float64(w.RunnerMem) / (1 << 20) }},
		{"CPU of the runners", "%", func(w *verdict.Window) float64 { return w.RunnerCPU }},
	} {
		strips.Rows = append(strips.Rows, strip(v, f.name, f.unit, f.of))
	}
	for i := range v.Windows {
		w := &v.Windows[i]
		row := Cells(format.LocalTime(w.StartUnix), format.Thousands(w.Messages), format.Thousands(w.Faults), format.Thousands(w.Late), format.Milliseconds(w.Lateness),
			format.Thousands(w.Opened), format.Thousands(w.Closed), format.Thousands(w.Open), format.Bytes(w.Memory), format.Bytes(w.RunnerMem), format.Percent(w.RunnerCPU))
		row[0].At = w.StartUnix
		if w.Faults > 0 {
			row[2].Tone = Bad
		}
		if w.Late > 0 {
			row[3].Tone = Doubt
		}
		rows.Rows = append(rows.Rows, row)
	}
	out.Tables = []Table{strips, rows}
	out.Notes = []string{fmt.Sprintf("A window has %s (WINDOW). The slope is Theil and Sen's over whole windows, without the first and the last one.", format.Duration(v.Plan.Window()))}
	return out
}

// strip returns the row of one figure.
func strip(v *verdict.Verdict, name, unit string, of func(w *verdict.Window) float64) Row {
	s, highest := &Spark{Label: name + " by window"}, 0.0
	for i := range v.Windows {
		value := of(&v.Windows[i])
		s.Values, highest = append(s.Values, value), math.Max(highest, value)
	}
	row := append(Row{{Text: name}, {Spark: s}}, Cells(format.Quantity(highest, unit), "", "")...)
	if slope, ok := v.Slope(of); ok {
		row[3].Text, row[4].Text = format.Change(slope.PerUnit, unit), format.Change(slope.Low, unit)+" to "+format.Change(slope.High, unit)
	}
	return row
}
