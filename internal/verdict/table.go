package verdict

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Table is a section of the report. Cells are text for readers; renderers align a column of numbers to the right.
type Table struct {
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"` // how to read it, in a sentence
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// word matches a word; units are shorter.
var word = regexp.MustCompile(`\pL{4}`)

// Numeric reports whether a column has only numbers or nothing. "20 at a time" is a name.
func (t *Table) Numeric(column int) bool {
	for _, row := range t.Rows {
		first, _ := utf8.DecodeRuneInString(row[column])
		if row[column] != "" && (!strings.ContainsRune("0123456789+-–", first) || word.MatchString(row[column])) {
			return false
		}
	}
	return len(t.Rows) > 0
}
