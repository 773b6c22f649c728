// Package report makes the documents of runs. A Page is data: a banner and sections of sentences, tables and charts.
// Text, Markdown, report.html (package html) and the live page are rendered from it. CSV files are written from the
// shards and the verdict.
package report

import "strings"

// A Page is a document. The zero value is an empty document.
type Page struct {
	Title     string
	Generator string // the command that writes the page
	Banner    Banner
	Sections  []Section
	Time      Axis
	Files     []File
}

// A Tone is the color of text.
type Tone string

// The tones. Neutral is the tone of a banner without a result.
const (
	Good    Tone = "good"
	Bad     Tone = "bad"
	Doubt   Tone = "doubt"
	Neutral Tone = "neutral"
)

// A Banner is the result of a run, and the most important numbers.
type Banner struct {
	Word     string
	Tone     Tone
	Sentence string   // the result with the numbers that determine it
	Name     string   // name of the run
	About    []string // start, duration, target, load
	Findings []string
	Tiles    []Tile
}

// A Tile is one number with its name.
type Tile struct {
	Name, Value, Note string
	Tone              Tone
}

// A Section is a part of a page, with an id for links.
type Section struct {
	ID, Title string
	Short     string   // title in the navigation; "": Title
	Lead      []string // sentences above the tables
	Tables    []Table
	Charts    []*Chart
	Notes     []string // explanations below the tables and charts
	Downloads []string // names of Files
}

func (s *Section) empty() bool { return len(s.Lead)+len(s.Tables)+len(s.Charts)+len(s.Downloads) == 0 }

// A Table has text from any source; the renderers escape it.
type Table struct {
	ID      string // id for links to the table; "": none
	Caption string
	Note    string   // explanation of the columns
	Columns []Column // if empty, each row has a name and a value
	Rows    []Row
}

// A Column of numbers is aligned to the right. The function Text omits a column of details.
type Column struct {
	Name   string
	Number bool
	Detail bool
}

// A Row may have fewer cells than the table has columns.
type Row []Cell

// A Cell is text and its color. If it has a mark before the text, only the mark has the color.
type Cell struct {
	Text  string
	Tone  Tone
	Mark  string
	At    float64 // Unix time to which a click on the text moves the charts; 0: none
	Link  string  // target of a link; "": none
	Note  string  // shown below the text, smaller and without its color
	Spark *Spark  // shown below the text; nil: none
}

// A File can be downloaded from the page.
type File struct {
	Name    string
	Content []byte
}

// Cells returns a row without colors.
func Cells(texts ...string) Row {
	row := make(Row, len(texts))
	for i, t := range texts {
		row[i].Text = t
	}
	return row
}

// Columns returns columns with these names. "#" before a name marks a column of numbers, "-" one of details.
func Columns(names ...string) []Column {
	out := make([]Column, len(names))
	for i, n := range names {
		n, out[i].Number = strings.CutPrefix(n, "#")
		out[i].Name, out[i].Detail = strings.CutPrefix(n, "-")
	}
	return out
}

// Facts returns a table of names and values. It omits pairs without a value.
func Facts(pairs ...string) Table {
	var t Table
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.Rows = append(t.Rows, Cells(pairs[i], pairs[i+1]))
		}
	}
	return t
}
