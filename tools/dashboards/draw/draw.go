// Package draw makes an SVG of a dashboard: each panel's queries, asked of a live Prometheus, in the
// panel's place. It is no Grafana: it draws lines, limits, phases and latest values, so that a page
// of documentation shows real data without one.
package draw

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

// Pixels of one cell of Grafana's grid, and around all of it.
const (
	cellWidth, cellHeight = 50, 30
	margin, gap           = 10, 6
	heading               = 30
)

var palette = []string{"#3a77b5", "#e08a2c", "#4d9a4d", "#c94f4f", "#8466ad", "#8a6355", "#cf77ab", "#7a7a7a", "#a8a632", "#3aa5b5"}

// Colours of annotations, by their names in Grafana.
var bands = map[string]string{"blue": "#3274d9", "purple": "#a352cc", "orange": "#ff780a", "red": "#e02f44"}

// A line is a named series.
type line struct {
	name   string
	series query.Series
	last   float64 // also where the series is drawn on top of others
}

// A band is a time that an annotation marks.
type band struct {
	from, to time.Time
	colour   string
}

// File asks Prometheus for all that a dashboard shows, and draws it into an SVG file.
func File(ctx context.Context, path string, d query.Dashboard, ask query.Prometheus, w query.Window, values map[string]string) error {
	var s sheet
	height := 0
	for _, p := range d.Panels {
		height = max(height, int(p.At.Y+p.At.H))
	}
	s.begin(2*margin+24*cellWidth, 2*margin+heading+height*cellHeight)
	s.text(margin, margin+18, 17, "#222", "start", d.Title)
	s.text(margin+24*cellWidth, margin+18, 11, "#666", "end", fmt.Sprintf("%s to %s UTC, drawn from Prometheus by tools/dashboards/draw; this is not Grafana",
		w.From.UTC().Format("2006-01-02 15:04:05"), w.To.UTC().Format("15:04:05")))
	for _, r := range d.Rows {
		s.text(margin, top(r.At.Y)+21, 13, "#444", "start", r.Title)
	}
	marks, err := phases(ctx, d, ask, w, values)
	if err != nil {
		return err
	}
	for _, p := range d.Panels {
		var lines []line
		for _, q := range p.Queries {
			got, err := ask.Range(ctx, w.Fill(q.Expr, values), w)
			if err != nil {
				return fmt.Errorf("draw %s/%s: %w", d.Name, p.Title, err)
			}
			for _, series := range got {
				lines = append(lines, line{name: series.Name(q.Legend), series: series, last: series.Last()})
			}
		}
		s.panel(p, lines, marks, w)
	}
	s.end()
	return os.WriteFile(path, s.Bytes(), 0o644)
}

// phases are the times at which an annotation's query has values.
func phases(ctx context.Context, d query.Dashboard, ask query.Prometheus, w query.Window, values map[string]string) ([]band, error) {
	var out []band
	for _, a := range d.Annotations {
		got, err := ask.Range(ctx, w.Fill(a.Expr, values), w)
		if err != nil {
			return nil, fmt.Errorf("draw the annotation %s of %s: %w", a.Name, d.Name, err)
		}
		for _, series := range got {
			for i, p := range series.Points {
				if i > 0 && p.At.Sub(series.Points[i-1].At) <= 2*w.Step {
					out[len(out)-1].to = p.At
				} else {
					out = append(out, band{from: p.At, to: p.At, colour: bands[a.Colour]})
				}
			}
		}
	}
	return out, nil
}

func top(y uint32) float64 { return float64(margin + heading + int(y)*cellHeight) }

// A sheet is an SVG being written.
type sheet struct{ bytes.Buffer }

func (s *sheet) begin(width, height int) {
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif">`+"\n", width, height)
	fmt.Fprintf(s, `<rect width="%d" height="%d" fill="#f2f3f5"/>`+"\n", width, height)
}

func (s *sheet) end() { s.WriteString("</svg>\n") }

func (s *sheet) text(x, y, size float64, colour, anchor, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" font-size="%g" fill="%s" text-anchor="%s">%s</text>`+"\n", x, y, size, colour, anchor, html.EscapeString(text))
}

func (s *sheet) rect(b box, colour string, opacity float64) {
	fmt.Fprintf(s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" fill-opacity="%g"/>`+"\n", b.x, b.y, b.w, b.h, colour, opacity)
}

func (s *sheet) rule(x1, y1, x2, y2 float64, colour, dash string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="%s"/>`+"\n", x1, y1, x2, y2, colour, dash)
}

// A box is a part of the sheet.
type box struct{ x, y, w, h float64 }

func (s *sheet) panel(p query.Panel, lines []line, marks []band, w query.Window) {
	b := box{
		x: float64(margin+int(p.At.X)*cellWidth) + gap/2, y: top(p.At.Y) + gap/2,
		w: float64(int(p.At.W)*cellWidth - gap), h: float64(int(p.At.H)*cellHeight - gap),
	}
	s.rect(b, "#ffffff", 1)
	s.text(b.x+8, b.y+17, 12, "#222", "start", p.Title)
	switch {
	case len(lines) == 0:
		s.text(b.x+b.w/2, b.y+b.h/2+5, 12, "#999", "middle", "no data")
	case p.Number:
		s.number(p, b, lines[0].series)
	default:
		s.graph(p, b, lines, marks, w)
	}
}

func (s *sheet) number(p query.Panel, b box, series query.Series) {
	v, colour := series.Last(), "#333"
	if p.Limit != nil {
		colour = "#2f8f46"
		if (v >= *p.Limit) == !p.Below {
			colour = "#d0342c"
		}
	}
	s.text(b.x+b.w/2, b.y+b.h/2+22, 32, colour, "middle", Format(v, p.Unit))
}

// ticks are round figures, in the unit, from about low to about high.
func ticks(low, high float64, unit string) []float64 {
	if unit != units.BytesIEC {
		return round(low, high)
	}
	step := 1.0 // of KiB, MiB …
	for math.Max(-low, high) >= 1024*step {
		step *= 1024
	}
	out := round(low/step, high/step)
	for i := range out {
		out[i] *= step
	}
	return out
}

func round(low, high float64) []float64 {
	raw := (high - low) / 4
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if unit*m >= raw {
			unit *= m
			break
		}
	}
	var out []float64
	for v := math.Floor(low/unit) * unit; v < high+unit; v += unit {
		out = append(out, v)
	}
	return out
}
