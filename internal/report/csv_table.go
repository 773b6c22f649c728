package report

import (
	"encoding/csv"
	"io"
	"strings"
	"unicode"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// TableFile is the name of the file that has a table of a suite: "Latency of good answers, ms" is in
// latency-of-good-answers-ms.csv.
func TableFile(t *verdict.Table) string {
	words := strings.FieldsFunc(strings.ToLower(t.Title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-") + ".csv"
}

// TableCSV writes a table of a suite for a spreadsheet: numbers without the commas that people read them by.
func TableCSV(w io.Writer, t *verdict.Table) error {
	out := csv.NewWriter(w)
	head := make([]string, len(t.Columns))
	for i, text := range t.Columns {
		head[i] = cell(text)
	}
	_ = out.Write(head) // Error returns its error
	for _, cells := range t.Rows {
		written := make([]string, len(cells))
		for i, text := range cells {
			if t.Numeric(i) {
				written[i] = strings.ReplaceAll(text, ",", "")
			} else {
				written[i] = cell(text)
			}
		}
		_ = out.Write(written)
	}
	out.Flush()
	return out.Error()
}
