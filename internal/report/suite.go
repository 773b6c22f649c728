package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// declaredFacts are the facts of a run whose script declared what it does: what ran, what it found, and when.
func declaredFacts(v *verdict.Verdict) [][2]string {
	rows := [][2]string{
		{"suite", fmt.Sprintf("%s, profile %s, %s, %s", v.Suite.Name, v.Suite.Profile, format.Count(len(v.Suite.Stages), "stage"), format.Count(v.Plan.Runners, "runner"))},
		{"target", v.Suite.BackendURL},
	}
	for _, f := range v.Facts {
		rows = append(rows, [2]string{f.Name, f.Value})
	}
	if v.StartedUnix > 0 {
		rows = append(rows, [2]string{"from", format.Moment(v.StartedUnix) + " to " + format.Moment(v.EndedUnix)})
	}
	return rows
}

// runnerTable says who made the load.
func runnerTable(v *verdict.Verdict) verdict.Table {
	t := verdict.Table{Title: "Runners", Columns: []string{"runner", "host", "segment", "state", "RSS at most", "CPU"}}
	for _, r := range v.Runners {
		t.Rows = append(t.Rows, []string{fmt.Sprint(r.Index), r.Host, r.Segment, r.State, format.Bytes(r.RSSMax), fmt.Sprintf("%.1f s", r.CPUSeconds)})
	}
	return t
}

// table sets columns of numbers to the right.
func (p printer) table(t verdict.Table) {
	p.printf("\n%s\n", plain(t.Title))
	if t.Note != "" {
		p.wrapped("  ", t.Note)
	}
	lines := make([]string, len(t.Rows)+1)
	for i, name := range t.Columns {
		column := []string{plain(name)}
		for _, row := range t.Rows {
			column = append(column, plain(row[i]))
		}
		width := 0
		for _, cell := range column {
			width = max(width, utf8.RuneCountInString(cell))
		}
		if !t.Numeric(i) {
			width = -width
		}
		for n, cell := range column {
			lines[n] += fmt.Sprintf("  %*s", width, cell)
		}
	}
	for _, line := range lines {
		p.printf("%s\n", strings.TrimRight(line, " "))
	}
}
