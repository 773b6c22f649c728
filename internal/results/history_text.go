package results

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Text writes the history for a terminal: at most limit of the newest runs, and their plans.
func (h *History) Text(w io.Writer, limit int) error {
	out := report.NewText(w, false)
	n := h.count()
	counts := []string{format.Count(len(h.Runs), "run")}
	for _, group := range kinds {
		if n[group.outcome] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n[group.outcome], group.outcome))
		}
	}
	out.Wrap("", h.Folder+": "+strings.Join(counts, ", "))
	newest := h.Runs[:min(limit, len(h.Runs))]
	for _, r := range newest {
		fmt.Fprintln(out)
		facts := r.facts()
		out.Table(&facts)
	}
	if omitted := len(h.Runs) - len(newest); omitted > 0 {
		out.Wrap("\n", fmt.Sprintf("… and %d more: --limit shows them, and %s has all.", omitted, HistoryFile))
	}
	for _, p := range h.Plans {
		if h.id(p) != "" && slices.ContainsFunc(newest, func(r *Entry) bool { return r.Plan == p }) {
			fmt.Fprintln(out)
			table := p.table("")
			out.Table(&table)
		}
	}
	if len(h.Unrelated) > 0 {
		out.Wrap("\nother folders: ", strings.Join(h.Unrelated, ", "))
	}
	return out.Flush()
}

// facts returns a table of a few lines about a run.
func (r *Entry) facts() report.Table {
	name := strings.ToUpper(r.outcome())
	about := fmt.Sprintf("%s, %s", r.Name, format.Time(r.Started))
	if r.Verdict == nil {
		return report.Facts(name, about, "reason", r.Reason)
	}
	status, _ := r.status()
	return report.Facts(name, about, "plan", r.Plan.Title, "faults", r.problem(), "figures", strings.Join(r.figures(), ", "), "compared", status, "changed", r.changesSincePrevious())
}

// A Pair is two runs, of any plans.
type Pair struct{ Old, New *Entry }

// ReadPair reads the folders of two runs. Both must have a verdict.
func ReadPair(older, newer string) (p Pair, err error) {
	for folder, run := range map[string]**Entry{older: &p.Old, newer: &p.New} {
		r := readEntry(folder)
		switch {
		case r == nil:
			return p, fmt.Errorf("%s is not the folder of a run", folder)
		case r.Verdict == nil:
			return p, fmt.Errorf("%s is %s: %s", folder, r.State, r.Reason)
		}
		*run = r
	}
	return p, nil
}

// Text writes the differences of the two runs.
func (p Pair) Text(w io.Writer) error {
	out := report.NewText(w, false)
	about := report.Table{}
	for i, r := range []*Entry{p.Old, p.New} {
		about.Rows = append(about.Rows, report.Cells([]string{"old", "new"}[i], fmt.Sprintf("%s, %s: %s", r.Name, format.Time(r.Started), r.outcome())),
			report.Cells("", suite.Title(r.Verdict)))
		if problem := r.problem(); problem != "" {
			about.Rows = append(about.Rows, report.Cells("", problem))
		}
	}
	differences := changes(p.Old, p.New)
	if len(differences) == 0 {
		differences = []string{"nothing: neither versions nor machine nor settings"}
	}
	for i, change := range differences {
		about.Rows = append(about.Rows, report.Cells([]string{"changed", ""}[min(i, 1)], change))
	}
	out.Table(&about)
	fmt.Fprintln(out)
	t := report.Table{Columns: report.Columns("metric", "#old", "#new")}
	for _, m := range p.metrics() {
		row := report.Cells(m.Name, "–", "–")
		for i, r := range []*Entry{p.Old, p.New} {
			if v, known := r.metrics[m.Name]; known {
				row[i+1].Text = number(m, v)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	out.Table(&t)
	fmt.Fprintln(out)
	if err := compare.SamePlan(p.Old.Run, p.New.Run); err != nil {
		out.Wrap("", "The runs have different plans, so the service is not the only cause of differences between their metrics.")
	} else {
		out.Wrap("", "The runs are of one plan. Differences of two runs may be chance: soak compare decides, from three runs on.")
	}
	return out.Flush() //nolint:wrapcheck // of standard output
}

// metrics returns the metrics of either run, without faults that neither run had.
func (p Pair) metrics() (out []verdict.Metric) {
	for _, r := range []*Entry{p.Old, p.New} {
		for _, m := range suite.Metrics(r.Verdict) {
			known := slices.ContainsFunc(out, func(other verdict.Metric) bool { return other.Name == m.Name })
			if fault := m.Fault && p.Old.metrics[m.Name]+p.New.metrics[m.Name] == 0; !known && !fault {
				out = append(out, m)
			}
		}
	}
	return out
}
