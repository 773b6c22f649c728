// Package draw makes an SVG of a dashboard: each panel's queries, asked of a live Prometheus, in the
// panel's place. It is no Grafana: it draws lines, limits, phases and latest values, so that a page
// of documentation shows real data without one.
package draw

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/sse-soak/sse-soak/tools/dashboards"
	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

// Pixels of one cell of Grafana's grid, and around all of it.
const (
	cellWidth, cellHeight = 50, 30
	margin, gap           = 10, 6
	heading               = 30
)

// Colours of annotations, by their names in Grafana.
var bands = map[string]string{"blue": "#3274d9", "purple": "#a352cc", "orange": "#ff780a", "red": "#e02f44"}

// A line is a named series.
type line struct {
	query.Series
	name string
	last float64 // also where the series is drawn on top of others
}

// A band is a time that an annotation marks.
type band struct {
	from, to time.Time
	colour   string
}

// Files asks Prometheus for all that the dashboards show, and draws each into an SVG file in a folder.
func Files(ctx context.Context, folder string, v query.View) error {
	for _, b := range dashboards.Boards() {
		s, err := draw(ctx, b, v)
		if err != nil {
			return fmt.Errorf("draw %s: %w", b.Name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, b.Name+".svg"), s.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func draw(ctx context.Context, d dashboards.Board, v query.View) (*sheet, error) {
	tiles := d.Tiles()
	bottom := boxOf(tiles[len(tiles)-1].At)
	width, height := float64(2*margin+dashboards.Columns*cellWidth), bottom.y+bottom.h+gap/2+margin
	s := &sheet{view: v}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="Helvetica, Arial, sans-serif">`+"\n", width, height)
	s.rect(box{0, 0, width, height}, "#f2f3f5", 1)
	s.text(margin, margin+18, 17, "#222", "start", d.Title)
	s.text(width-margin, margin+18, 11, "#666", "end", fmt.Sprintf("%s to %s UTC, drawn from Prometheus by tools/dashboards/draw; this is not Grafana",
		v.Range.Start.UTC().Format(time.DateTime), v.Range.End.UTC().Format(time.TimeOnly)))
	if err := s.phases(ctx, d); err != nil {
		return nil, err
	}
	for _, tile := range tiles {
		b := boxOf(tile.At)
		if tile.Panel == nil {
			s.text(margin, b.y+18, 13, "#444", "start", tile.Heading)
		} else if err := s.panel(ctx, tile.Panel, b); err != nil {
			return nil, err
		}
	}
	s.WriteString("</svg>\n")
	return s, nil
}

// A sheet is an SVG being written.
type sheet struct {
	bytes.Buffer
	view  query.View
	marks []band
}

// phases finds the times at which an annotation's query has values.
func (s *sheet) phases(ctx context.Context, d dashboards.Board) error {
	for _, a := range d.Annotations() {
		all, err := s.view.Ask(ctx, a.Expr)
		if err != nil {
			return err
		}
		for _, series := range all {
			for i, p := range series.Values {
				if i == 0 || p.Timestamp.Sub(series.Values[i-1].Timestamp) > 2*s.view.Range.Step {
					s.marks = append(s.marks, band{from: p.Timestamp.Time(), colour: bands[a.Colour]})
				}
				s.marks[len(s.marks)-1].to = p.Timestamp.Time()
			}
		}
	}
	return nil
}

func (s *sheet) panel(ctx context.Context, p *dashboards.Panel, b box) error {
	var lines []line
	for _, q := range p.Queries {
		all, err := s.view.Ask(ctx, q.Expr)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Title, err)
		}
		for _, series := range all {
			lines = append(lines, line{Series: series, name: series.Name(q.Legend), last: series.Last()})
		}
	}
	s.rect(b, "#ffffff", 1)
	s.text(b.x+8, b.y+17, 12, "#222", "start", p.Title)
	switch {
	case len(lines) == 0:
		s.text(b.x+b.w/2, b.y+b.h/2+5, 12, "#999", "middle", "no data")
	case p.Number:
		colour := "#333"
		if l := p.Limit; l != nil && (lines[0].last >= l.At) == l.Below {
			colour = "#2f8f46"
		} else if l != nil {
			colour = "#d0342c"
		}
		s.text(b.x+b.w/2, b.y+b.h/2+22, 32, colour, "middle", format(lines[0].last, p.Unit))
	case p.Heat:
		s.heat(b, lines)
	default:
		s.graph(p, b, lines)
	}
	return nil
}

// A box is a part of the sheet.
type box struct{ x, y, w, h float64 }

// boxOf is the place of a tile, less the gap around it.
func boxOf(at dashboard.GridPos) box {
	return box{
		x: float64(margin+at.X*cellWidth) + gap/2, y: float64(margin+heading+at.Y*cellHeight) + gap/2,
		w: float64(at.W*cellWidth - gap), h: float64(at.H*cellHeight - gap),
	}
}

func (s *sheet) text(x, y, size float64, colour, anchor, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" font-size="%g" fill="%s" text-anchor="%s">%s</text>`+"\n", x, y, size, colour, anchor, html.EscapeString(text))
}

func (s *sheet) rect(b box, colour string, opacity float64) {
	fmt.Fprintf(s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="%g"/>`+"\n", b.x, b.y, b.w, b.h, colour, opacity)
}

// rule is a horizontal line.
func (s *sheet) rule(x, y, width float64, colour, dash string) {
	fmt.Fprintf(s, `<path d="M%.1f %.1fh%.1f" stroke="%s" stroke-dasharray="%s"/>`+"\n", x, y, width, colour, dash)
}
