// Package html lays out a report.Page as HTML: report.html, the page of all runs, and the page of a run in progress.
// Except for the page of a run in progress, a page needs no network and opens from disk.
//
// page.html.tmpl is the template of a page, and the script in page/ draws the charts. `make build` bundles the script
// into bundle/. Without the bundle (after a bare `go build`), the page has no charts and states the reason.
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

	"github.com/sse-soak/sse-soak/internal/report"
)

//go:embed page.html.tmpl
var layout string

//go:embed page/page.css
var style string

// bundledFiles holds page.js and page.css, which `make build` generates. The folder itself always exists.
//
//go:embed all:bundle
var bundledFiles embed.FS

var pages = template.Must(template.New("page").Parse(layout))

// A document is the data of the template.
type document struct {
	*report.Page
	Style  template.CSS
	Script template.JS
	Policy string
	Data   any       // input of the script; nil: the page has no script
	Live   *LivePage // nil: the page never changes
}

// Write writes a page. A page with neither charts nor files has no script.
func Write(w io.Writer, p *report.Page) error {
	files := map[string]string{}
	for _, f := range p.Files {
		var err error
		if files[f.Name], err = compress(f.Content); err != nil {
			return fmt.Errorf("compress %s: %w", f.Name, err)
		}
	}
	d := document{Page: p}
	if charts := chartsOf(p.Sections...); len(charts)+len(files) > 0 {
		d.Data = map[string]any{"time": p.Time, "charts": charts, "files": files}
	}
	return d.write(w)
}

func (d *document) write(w io.Writer) error {
	var script, uplot string
	if d.Data != nil {
		var errs [2]error
		script, errs[0] = bundle("page.js")
		uplot, errs[1] = bundle("page.css")
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
	}
	css := uplot + style
	d.Style, d.Script, d.Policy = template.CSS(css), template.JS(script), policy(css, script) // #nosec G203 -- our own files
	if d.Live != nil {
		d.Policy += "; connect-src 'self'"
	}
	return pages.Execute(w, d)
}

func chartsOf(sections ...report.Section) map[string]*report.Chart {
	out := map[string]*report.Chart{}
	for _, s := range sections {
		for _, c := range s.Charts {
			out[c.ID] = c
		}
	}
	return out
}

func bundle(name string) (string, error) {
	b, err := bundledFiles.ReadFile("bundle/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// policy returns a Content Security Policy that allows only the page's own style and script, and images in data: URLs.
func policy(style, script string) string {
	return fmt.Sprintf("default-src 'none'; img-src data:; style-src %s; script-src %s", contentHash(style), contentHash(script))
}

func contentHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// compress returns content in the form that a page embeds: gzip, encoded in base64.
func compress(content []byte) (string, error) {
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
