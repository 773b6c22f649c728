package results

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
)

// nameWidth is how far in the lines of a run begin.
const nameWidth = 12

// Text writes the history for a terminal of 80 columns: the newest runs, at most so many, and their plans.
func (h *History) Text(w io.Writer, most int) error {
	out := bufio.NewWriter(w)
	n := h.count()
	sum := []string{format.Count(len(h.Runs), "run")}
	for _, word := range []string{"pass", connectionsOnly, "fail", "invalid", "unfinished", "damaged"} {
		if n[word] > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", n[word], word))
		}
	}
	report.Wrapped(out, "", h.Folder+": "+strings.Join(sum, ", "))
	shown := h.Runs[:min(most, len(h.Runs))]
	for _, r := range shown {
		fmt.Fprintln(out)
		r.text(out)
	}
	if rest := len(h.Runs) - len(shown); rest > 0 {
		fmt.Fprintln(out)
		report.Wrapped(out, "", fmt.Sprintf("… and %d more: --limit shows them, and %s has all.", rest, HistoryFile))
	}
	for _, p := range h.Plans {
		if h.id(p) != "" && p.shown(shown) {
			p.text(out)
		}
	}
	if len(h.Others) > 0 {
		fmt.Fprintln(out)
		report.Wrapped(out, heading("no runs"), strings.Join(h.Others, ", "))
	}
	return out.Flush()
}

func (p *PlanRuns) shown(runs []*Entry) bool {
	for _, r := range runs {
		if r.Plan == p {
			return true
		}
	}
	return false
}

// heading sets the name of a line before it.
func heading(name string) string { return fmt.Sprintf("%-*s ", nameWidth-1, name) }

func (r *Entry) text(out *bufio.Writer) {
	report.Wrapped(out, heading(strings.ToUpper(r.outcome())), fmt.Sprintf("%s, %s", r.Name, format.Time(r.Started)))
	if r.Verdict == nil {
		report.Wrapped(out, heading(""), r.Why)
		return
	}
	report.Wrapped(out, heading("plan"), r.Plan.Title)
	if trouble := r.trouble(); trouble != "" {
		report.Wrapped(out, heading("because"), trouble)
	}
	report.Wrapped(out, heading("figures"), strings.Join(r.figures(), ", "))
	text, _ := r.standing()
	report.Wrapped(out, heading("compared"), text)
	report.Wrapped(out, heading("changed"), r.since())
}

// text is the metrics of a plan over its runs.
func (p *PlanRuns) text(out *bufio.Writer) {
	fmt.Fprintln(out)
	report.Wrapped(out, "", p.Title)
	report.Wrapped(out, "", p.sum())
	for _, l := range p.lines() {
		fmt.Fprintf(out, "  %-22s %s  newest %s, median %s\n", report.Plain(l.Name), blocks(l.values), number(l.Metric, l.values[len(l.values)-1]), number(l.Metric, l.Median))
	}
}

// mostBlocks is how many values blocks draws.
const mostBlocks = 20

// blocks draws values in one line of text, from 0 to the largest; a gap is a space.
func blocks(values []float64) string {
	const heights = "▁▂▃▄▅▆▇█"
	steps := []rune(heights)
	values = values[max(len(values)-mostBlocks, 0):]
	highest := 0.
	for _, v := range values {
		if v > highest {
			highest = v
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case highest == 0:
			b.WriteRune(steps[0])
		default:
			b.WriteRune(steps[int(math.Round(max(v, 0)/highest*float64(len(steps)-1)))])
		}
	}
	return b.String()
}
