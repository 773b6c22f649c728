package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// windows returns a table with a row of bars for each figure, and a table with a row for each window. The section is
// empty if the verdict has no windows.
func windows(v *verdict.Verdict) Section {
	out := Section{ID: "windows", Title: "Windows"}
	if len(v.Windows) == 0 {
		return out
	}
	strips := Table{Columns: Columns("figure", "windows", "#highest", "#per hour", "95 % interval, per hour")}
	rows := Table{Columns: Columns("from", "#messages", "#faulty", "#late", "#lateness p99", "#opened", "#closed", "#open at its end", "#backend", "#runners", "#CPU of the runners")}
	for i := range verdict.Figures {
		strips.Rows = append(strips.Rows, strip(v, &verdict.Figures[i]))
	}
	for i := range v.Windows {
		w := &v.Windows[i]
		row := Cells(format.UnixTime(w.StartUnix), format.Thousands(w.Messages), format.Thousands(w.Faults), format.Thousands(w.Late), cmp.Or(ifKnown(w.Messages, format.Milliseconds(w.Lateness)), "–"),
			format.Thousands(w.Opened), format.Thousands(w.Closed), format.Thousands(w.Open), cmp.Or(ifKnown(w.Memory, format.Bytes(w.Memory)), "–"), format.Bytes(w.RunnerMem), format.Percent(w.RunnerCPU))
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
	out.Notes = []string{fmt.Sprintf("Each window lasts %s (WINDOW). The slope is the Theil–Sen estimate over whole windows, without the first and the last one.", format.Duration(v.Plan.Window()))}
	if trends := v.Trends(); len(trends) > 0 {
		out.Notes = append(out.Notes, "Significant changes over the whole run (one figure in twenty is significant by chance): "+strings.Join(trends, "; ")+".")
	}
	return out
}

func strip(v *verdict.Verdict, f *verdict.Figure) Row {
	s, highest := &Spark{Label: f.Name + " by window"}, math.NaN()
	for i := range v.Windows {
		value := f.Value(&v.Windows[i])
		if s.Values = append(s.Values, value); !math.IsNaN(value) && !(highest >= value) {
			highest = value
		}
	}
	row := append(Row{{Text: f.Name}, {Spark: s}}, Cells(format.Quantity(highest, f.Unit), "", "")...)
	if slope, ok := v.Slope(f); ok {
		row[3].Text, row[4].Text = format.Change(slope.PerUnit, f.Unit), f.Interval(slope)
	}
	return row
}
