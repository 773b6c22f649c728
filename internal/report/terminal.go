package report

import (
	"fmt"
	"io"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Look is how a command shows a verdict.
type Look struct {
	Verbose bool // all that report.txt has
	Colour  bool // the output is a terminal
}

// maxWarnings is the maximum number of lines of warnings on a terminal.
const maxWarnings = 3

// Terminal writes what a command shows of a verdict: warnings, figures, and the checks that are not met. files are lines that name
// where more is. The result is the first line and the last.
func Terminal(w io.Writer, v *verdict.Verdict, look Look, files ...string) error {
	if look.Colour {
		w = format.WithoutEscaper(w) // the texts are escaped one by one
	}
	out := NewText(w, look.Colour)
	b := banner(v)
	switch {
	case look.Verbose:
		out.page(Brief(v))
	default:
		out.banner(&b)
		out.warnings(v.Warnings)
		results := Section{}
		if v.Layout.Declared {
			results = suiteTables(v)
		}
		for _, s := range []Section{figures(v), results, actions(v), unmetChecks(v)} {
			out.section(&s)
		}
	}
	out.line("")
	for _, line := range files {
		out.line(line)
	}
	out.verdict(&b)
	return out.Flush()
}

// warnings writes at most maxWarnings lines.
func (t *TextWriter) warnings(all []string) {
	left := maxWarnings
	for i, warning := range all {
		lines := fold("warning: "+warning, textWidth, false)
		if more := len(all) - i; left < len(lines) || left == 1 && more > 1 {
			t.line(fmt.Sprintf("%s in report.txt", format.Plural(more, "warning is", "warnings are")))
			return
		}
		for _, line := range lines {
			t.line(line)
		}
		left -= len(lines)
	}
}
