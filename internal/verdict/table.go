package verdict

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Table is a section of the report. Cells are text as people read it; a column whose cells are
// numbers is set to the right by whoever renders it.
type Table struct {
	Title   string     `json:"title"`
	Note    string     `json:"note,omitempty"` // how to read it, in a sentence
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// word is none of the units, which are shorter.
var word = regexp.MustCompile(`\pL{4}`)

// Numeric tells whether a column holds numbers, or nothing. "20 at a time" is a name.
func (t *Table) Numeric(column int) bool {
	for _, row := range t.Rows {
		first, _ := utf8.DecodeRuneInString(row[column])
		if row[column] != "" && (!strings.ContainsRune("0123456789+-–", first) || word.MatchString(row[column])) {
			return false
		}
	}
	return len(t.Rows) > 0
}
