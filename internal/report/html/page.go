package html

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
)

// A Page is what the template lays out. The zero value is a page that is empty.
type Page struct {
	Title    string
	Made     string // by what: the page's generator
	Banner   Banner
	Sections []Section
	Time     Axis
	Files    []File
}

// Tone is the colour of a text: "good", "bad", "doubt" or "".
type Tone string

// The tones.
const (
	Good  Tone = "good"
	Bad   Tone = "bad"
	Doubt Tone = "doubt"
)

// A Banner is the verdict, large, and the few numbers that people ask for first.
type Banner struct {
	Word    string
	Tone    Tone
	Name    string // of the run
	Reasons []string
	Tiles   []Tile
}

// A Tile is one number.
type Tile struct {
	Name, Value, Note string
	Tone              Tone
}

// A Section has an id for links to it.
type Section struct {
	ID, Title string
	Short     string   // in the navigation, Title where it is empty
	Lead      []string // sentences above all else
	Tables    []Table
	Charts    []*Chart
	Notes     []string // what to know when reading it
	Downloads []string // names of Files
}

// A Table is of text; whatever comes from outside is escaped by the template.
type Table struct {
	ID      string // for links to it; "": none
	Caption string
	Note    string   // how to read it
	Columns []Column // none: the first cell of a row names it
	Rows    []Row
}

// A Column of numbers is aligned to the right.
type Column struct {
	Name   string
	Number bool
}

// A Row may be shorter than the columns.
type Row []Cell

// A Cell is text and its colour; with a mark before the text, only that has the colour.
type Cell struct {
	Text  string
	Tone  Tone
	Mark  string
	At    float64 // a moment in Unix seconds that the text is of, and the charts show; 0: none
	Link  string  // where the text leads; "": nowhere
	Note  string  // below the text, smaller and without its colour
	Spark *Spark  // below the text; nil: none
}

// cells are a row without colours.
func cells(texts ...string) Row {
	row := make(Row, len(texts))
	for i, t := range texts {
		row[i].Text = t
	}
	return row
}

// columns are named; a name that begins with # is a number's.
func columns(names ...string) []Column {
	out := make([]Column, len(names))
	for i, n := range names {
		out[i].Name, out[i].Number = strings.CutPrefix(n, "#")
	}
	return out
}

// facts is a table of names and what they are; those without are left out.
func facts(pairs ...string) Table {
	var t Table
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.Rows = append(t.Rows, cells(pairs[i], pairs[i+1]))
		}
	}
	return t
}

//go:embed page.html.tmpl
var layout string

//go:embed page/page.css
var style string

// bundled holds page.js and uplot.css, which `make build` makes; the folder itself is always
// there, so that the program builds without them.
//
//go:embed all:bundle
var bundled embed.FS

var page = template.Must(template.New("page").Parse(layout))

// Write writes the page. Where there is nothing to draw and nothing to download, it has no script.
func (p *Page) Write(w io.Writer) error {
	files := map[string]string{}
	for _, f := range p.Files {
		var err error
		if files[f.Name], err = packed(f.Content); err != nil {
			return fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	charts := p.charts()
	var script, uplot string
	var data any
	if len(charts)+len(files) > 0 {
		data = map[string]any{"time": p.Time, "charts": charts, "files": files}
		var errs [2]error
		script, errs[0] = bundle("page.js")
		uplot, errs[1] = bundle("page.css")
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
	}
	css := uplot + style
	return page.Execute(w, struct {
		*Page
		Style  template.CSS
		Script template.JS
		Policy string
		Data   any // nil: nothing for a script to do
	}{
		p, template.CSS(css), template.JS(script), policy(css, script), data, //nolint:gosec // our own files
	})
}

// bundle is a file of the bundle, "" where `make build` did not make it.
func bundle(name string) (string, error) {
	b, err := bundled.ReadFile("bundle/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// policy lets the page run its own script and nothing else, whatever got into it.
func policy(style, script string) string {
	return fmt.Sprintf("default-src 'none'; img-src data:; style-src %s; script-src %s", hashed(style), hashed(script))
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// packed is a file as the page carries it: gzip in base64, a sixth of connections.csv.
func packed(content []byte) (string, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write(content); err != nil {
		return "", err
	}
	err = z.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}
