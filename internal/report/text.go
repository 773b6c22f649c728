// Package report renders a verdict for people: report.txt for a terminal, report.md for a
// pull request, connections.csv and series.csv for a spreadsheet.
package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

const (
	textWidth  = 80
	nameWidth  = 38
	limitWidth = 16
	factWidth  = 20
)

// Text writes at most 80 columns, but for URLs and sentences that cannot be broken.
func Text(w io.Writer, v *verdict.Verdict) error {
	out := printer{bufio.NewWriter(w)}
	out.printf("%s  %s\n", v.Title(), plain(v.TestID))
	for _, r := range v.Headline() {
		out.wrapped("  - ", r)
	}
	out.printf("\n")
	out.facts(facts(v))
	out.printf("\n")
	checks(out, v.Checks)
	for i, r := range v.AllReasons() {
		if i == 0 {
			out.printf("\nAll reasons\n")
		}
		out.wrapped("  - ", r)
	}
	for i := range v.Actions {
		out.printf("\n%s\n", ActionTitle(&v.Actions[i]))
		out.facts(ActionFacts(&v.Actions[i]))
	}
	for _, table := range tables(v) {
		out.table(table)
	}
	machines, ok := Machines(v, mostMachines)
	if ok {
		out.rows(machines)
	}
	if (len(tables(v)) > 0 || ok || len(v.Actions) > 0) && len(v.Warnings) > 0 {
		out.printf("\n")
	}
	for _, warning := range v.Warnings {
		out.wrapped("warning: ", warning)
	}
	return out.Flush()
}

// checks sets the table of checks; what does not fit its column goes on in the next line.
func checks(out printer, all []verdict.Check) {
	name := len("check")
	for _, c := range all {
		name = max(name, min(utf8.RuneCountInString(plain(c.Name)), nameWidth))
	}
	row := func(mark string, cells ...string) {
		line := fmt.Sprintf("%-2s  %-*s  %-*s  %s", mark, name, cells[0], limitWidth, cells[1], cells[2])
		out.printf("%s\n", strings.TrimRight(line, " "))
	}
	row("", "check", "limit", "actual")
	for _, c := range all {
		first := plainMarks[Mark(c)]
		names, limits, actuals := fold(c.Name, nameWidth, true), fold(c.Limit, limitWidth, true), fold(c.Actual, textWidth-name-limitWidth-8, true)
		for len(names)+len(limits)+len(actuals) > 0 {
			row(first, pop(&names), pop(&limits), pop(&actuals))
			first = ""
		}
	}
}

// Mark returns the mark of a check: ✓ met, ✗ not met, ? not met, which makes the run invalid, ! a warning, – not judged.
func Mark(c verdict.Check) string { return marks[c.State()] }

var marks = map[verdict.State]string{
	verdict.Met: "✓", verdict.Broken: "✗", verdict.Undecided: "?", verdict.Warned: "!", verdict.NotJudged: "–",
}

// plainMarks are the marks for a terminal, which may know no others.
var plainMarks = map[string]string{"✓": "ok", "✗": "XX", "?": "??", "!": "!!", "–": "--"}

// fold breaks s between words into lines of at most so many characters; a word that is longer
// has a line of its own, or with cut is cut into several.
func fold(s string, most int, cut bool) (lines []string) {
	line := []rune{}
	for _, word := range strings.Fields(plain(s)) {
		w := []rune(word)
		if len(line) > 0 && len(line)+1+len(w) <= most {
			line = append(append(line, ' '), w...)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
		for cut && len(w) > most {
			lines = append(lines, string(w[:most]))
			w = w[most:]
		}
		line = w
	}
	return append(lines, string(line))
}

// pop takes the first line off, empty where there is none.
func pop(lines *[]string) (first string) {
	if len(*lines) > 0 {
		first, *lines = (*lines)[0], (*lines)[1:]
	}
	return first
}

// plain takes out what a terminal or the table would obey: escapes, tabs, line ends.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
}

// A printer keeps its first error for Flush.
type printer struct{ *bufio.Writer }

func (p printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// facts sets each under the one before, its name in front.
func (p printer) facts(all []verdict.Fact) {
	width := 12
	for _, f := range all {
		width = max(width, min(utf8.RuneCountInString(plain(f.Name)), factWidth))
	}
	for _, f := range all {
		name := fmt.Sprintf("%-*s ", width, plain(f.Name))
		line := name + plain(f.Value)
		if utf8.RuneCountInString(line) > textWidth {
			p.wrapped(name, f.Value)
			continue
		}
		p.printf("%s\n", line)
	}
}

// wrapped sets a text in lines behind a prefix, as far in as that.
func (p printer) wrapped(prefix, text string) {
	for _, line := range fold(text, textWidth-len(prefix), false) {
		p.printf("%s%s\n", prefix, line)
		prefix = strings.Repeat(" ", len(prefix))
	}
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

// rows sets a table that would be too wide, row by row: what is in the first column, and the others by their names.
func (p printer) rows(t verdict.Table) {
	p.printf("\n%s\n", plain(t.Title))
	p.wrapped("  ", t.Note)
	for _, row := range t.Rows {
		var cells []string
		for i, cell := range row[1:] {
			cells = append(cells, t.Columns[i+1]+" "+cell)
		}
		p.wrapped("  - ", row[0]+": "+strings.Join(cells, ", "))
	}
}
