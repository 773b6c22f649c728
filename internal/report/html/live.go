package html

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/sse-soak/sse-soak/internal/report"
)

// A LivePage is the page of a run in progress.
type LivePage struct {
	report.Page
	Share float64 // completed share of the run, 0 to 1
	Clock string  // elapsed and total time as text
	Links []Link  // links to the metrics of the run
}

// A Link is a link to another page.
type Link struct{ Name, URL string }

// WriteLive writes the page for a new viewer. The page requests the events after id.
func WriteLive(w io.Writer, l *LivePage, id string) error {
	d := document{Page: &l.Page, Live: l, Data: map[string]any{
		"time": l.Time, "charts": chartsOf(l.Sections...), "files": map[string]string{}, "live": id,
	}}
	return d.write(w)
}

// A Part is a part of a live page as viewers receive it. Content is JSON: the HTML that replaces the element with this
// ID, and the data of its charts.
type Part struct {
	ID      string
	Content json.RawMessage
}

// Parts returns those parts of the page that may change.
func (l *LivePage) Parts() ([]Part, error) {
	banner, err := part("now", "banner", document{Page: &l.Page, Live: l}, nil)
	if err != nil {
		return nil, err
	}
	tiles, err := part("tiles", "tiles", l.Banner.Tiles, nil)
	if err != nil {
		return nil, err
	}
	parts := []Part{banner, tiles}
	for _, s := range l.Sections {
		var charts map[string]any
		if len(s.Charts) > 0 {
			charts = map[string]any{"time": l.Time, "charts": chartsOf(s)}
		}
		encoded, err := part(s.ID, "section", s, charts)
		if err != nil {
			return nil, err
		}
		parts = append(parts, encoded)
	}
	return parts, nil
}

// part lays out the template with the given name as the part with the given id. charts may be nil.
func part(id, name string, data any, charts map[string]any) (Part, error) {
	var layout, content bytes.Buffer
	if err := pages.ExecuteTemplate(&layout, name, data); err != nil {
		return Part{}, fmt.Errorf("lay out %s: %w", id, err)
	}
	out := map[string]any{"html": layout.String()}
	for key, value := range charts {
		out[key] = value
	}
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false) // the JSON is not embedded in a page
	if err := encoder.Encode(out); err != nil {
		return Part{}, fmt.Errorf("write %s: %w", id, err)
	}
	return Part{id, bytes.TrimSpace(content.Bytes())}, nil
}
