package report

import (
	"fmt"
	"io"
	"math"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// TerminalOptions are the options for showing a verdict.
type TerminalOptions struct {
	Verbose bool // show the complete report.txt
	Color   bool // use colors, because the output is a terminal
}

// maxWarnings is the maximum number of lines of warnings on a terminal, without the line that counts the omitted ones.
const maxWarnings = 3

// Terminal writes a verdict for a terminal, with the result at the beginning and at the end. With Verbose, it writes
// report.txt; otherwise it omits the checks that are met. files are lines with the paths of further files.
func Terminal(w io.Writer, v *verdict.Verdict, options TerminalOptions, files ...string) error {
	if options.Color {
		w = format.WithoutEscaper(w) // the escaper would escape colors; control characters are replaced in each text
	}
	out := NewText(w, options.Color)
	b := banner(v)
	switch {
	case options.Verbose:
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
	out.verdict(&b, math.MaxInt) // one line, for scripts that read the last line
	return out.Flush()
}

func (t *TextWriter) warnings(list []string) {
	remaining := maxWarnings
	for i, warning := range list {
		lines := fold("warning: "+warning, textWidth, false)
		if omitted := len(list) - i; remaining < len(lines) || remaining == 1 && omitted > 1 {
			more := ""
			if i > 0 {
				more = "more "
			}
			t.line(fmt.Sprintf("%s in report.txt", format.Plural(omitted, more+"warning is", more+"warnings are")))
			return
		}
		for _, line := range lines {
			t.line(line)
		}
		remaining -= len(lines)
	}
}
