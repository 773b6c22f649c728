package report

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// title is what a run is called: a soak, or the suite's name.
func title(v *verdict.Verdict) string {
	if v.Suite == nil {
		return "Soak"
	}
	return strings.ToUpper(v.Suite.Name[:1]) + v.Suite.Name[1:]
}

// suiteFacts are the figures of a suite: what ran, what it found, and when.
func suiteFacts(v *verdict.Verdict) [][2]string {
	rows := [][2]string{
		{"suite", fmt.Sprintf("%s, profile %s, %s, %s", v.Suite.Name, v.Suite.Profile, Count(len(v.Suite.Stages), "stage"), Count(v.Plan.Runners, "runner"))},
		{"target", v.Suite.BackendURL},
	}
	for _, f := range v.Facts {
		rows = append(rows, [2]string{f.Name, f.Value})
	}
	if v.StartedUnix > 0 {
		rows = append(rows, [2]string{"from", moment(v.StartedUnix) + " to " + moment(v.EndedUnix)})
	}
	return rows
}

// runnerTable says who made the load.
func runnerTable(v *verdict.Verdict) verdict.Table {
	t := verdict.Table{Title: "Runners", Columns: []string{"runner", "host", "segment", "state", "RSS at most", "CPU"}}
	for _, r := range v.Runners {
		t.Rows = append(t.Rows, []string{fmt.Sprint(r.Index), r.Host, r.Segment, r.State, bytes(r.RSSMax), fmt.Sprintf("%.1f s", r.CPUSeconds)})
	}
	return t
}

// textTable sets columns of numbers to the right.
func textTable(out *printer, t verdict.Table) error {
	out.printf("\n%s\n", plain(t.Title))
	if t.Note != "" {
		out.wrapped("  ", t.Note)
	}
	right := numeric(t)
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(plain(c))
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(plain(row[i])))
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.TabIndent)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plain(cell)
			if right[i] {
				cells[i] = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cells[i])) + cells[i]
			}
		}
		fmt.Fprintf(w, "  %s\n", strings.TrimRight(strings.Join(cells, "\t"), " "))
	}
	return w.Flush()
}

// numeric finds the columns that hold numbers, or nothing.
func numeric(t verdict.Table) []bool {
	out := make([]bool, len(t.Columns))
	for i := range out {
		out[i] = t.Numeric(i)
	}
	return out
}

func markdownTable(out *printer, t verdict.Table) {
	out.printf("\n## %s\n\n", escape(t.Title))
	if t.Note != "" {
		out.printf("%s\n\n", escape(t.Note))
	}
	right := numeric(t)
	line := func(cells []string, text func(int, string) string) {
		out.printf("|")
		for i, c := range cells {
			out.printf(" %s |", text(i, c))
		}
		out.printf("\n")
	}
	escaped := func(_ int, cell string) string { return escape(cell) }
	line(t.Columns, escaped)
	line(t.Columns, func(i int, _ string) string { return map[bool]string{true: "--:", false: "---"}[right[i]] })
	for _, row := range t.Rows {
		line(row, escaped)
	}
}
