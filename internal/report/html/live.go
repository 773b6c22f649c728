package html

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
)

// A Live is the page of a run that goes on. It has the charts of the report, and its sections have the ids under which a
// viewer's page has them replaced.
type Live struct {
	Page
	Share   float64 // of the run that is over, 0 to 1
	Clock   string  // the same in words
	Links   []Link
	Partial bool // the charts have only the last points
}

// A Link leads to another page.
type Link struct{ Name, URL string }

// Neutral is the tone of a banner that says nothing good or bad yet.
const Neutral Tone = "neutral"

//go:embed live.html.tmpl
var liveLayout string

var livePage = template.Must(template.Must(page.Clone()).New("live").Parse(liveLayout))

// livePolicy is the Content Security Policy of the page: that of the report, and a connection to where it came from.
func livePolicy(style, script string) string { return policy(style, script) + "; connect-src 'self'" }

// Timelines is the section of the charts over time of a run of which not all is known. declared is that of verdict.Layout.
func Timelines(r *Run, declared bool) (Section, Axis) {
	s := &subject{Run: r, v: r.Verdict, series: newSeries(r.Merged, r.Samples, r.Machine.Cores)}
	axis := Axis{From: s.series.from, Step: step, N: s.series.n, Bands: []Band{}, Lines: s.lines()}
	if declared {
		return s.suiteTimelines(), axis
	}
	return s.timelines(), axis
}

// TimelineWindow is how many seconds a bar of a chart over time is wide: a page of the last points has to begin at a whole
// number of them.
func TimelineWindow(interval float64) int64 { return int64(window(interval)) * step }

// WriteLive writes the page for somebody who begins to look. What happens after the event of that id the page asks for.
func WriteLive(w io.Writer, l *Live, id string) error {
	script, err := bundle("page.js")
	if err != nil {
		return err
	}
	uplot, err := bundle("page.css")
	if err != nil {
		return err
	}
	css := uplot + style
	return livePage.Execute(w, struct {
		*Live
		Style  template.CSS
		Script template.JS
		Policy string
		Data   any
	}{
		l, template.CSS(css), template.JS(script), livePolicy(css, script), //nolint:gosec // our own files
		map[string]any{"time": l.Time, "charts": l.charts(), "files": map[string]string{}, "live": id},
	})
}

func (p *Page) charts() map[string]*Chart {
	out := map[string]*Chart{}
	for _, s := range p.Sections {
		for _, c := range s.Charts {
			out[c.ID] = c
		}
	}
	return out
}

// parts are the parts of the page that may change, as HTML, by id.
func (l *Live) parts() (map[string]string, error) {
	out := map[string]string{}
	write := func(id, name string, data any) error {
		var b bytes.Buffer
		if err := livePage.ExecuteTemplate(&b, name, data); err != nil {
			return fmt.Errorf("lay out %s: %w", id, err)
		}
		out[id] = b.String()
		return nil
	}
	if err := write("now", "now", l); err != nil {
		return nil, err
	}
	if err := write("tiles", "tiles", l.Banner.Tiles); err != nil {
		return nil, err
	}
	for _, s := range l.Sections {
		if l.Partial && s.ID == "timelines" {
			continue // it may lack charts without a new point
		}
		if err := write(s.ID, "section", s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A change is what a viewer's page takes: a snapshot has all, a delta what is new.
type change struct {
	Parts  map[string]string `json:"parts,omitempty"`
	Time   *Axis             `json:"time,omitempty"`
	Charts map[string]*Chart `json:"charts,omitempty"`
	Points map[string]fresh  `json:"points,omitempty"` // by chart
}

// fresh are new points by series.
type fresh map[string]points

// points are new points of a series, by index; each replaces the one that was there.
type points struct {
	At     Numbers `json:"at"`
	Values Numbers `json:"values"`
}

// Changes follow a page: each call says what is new since the one before. The zero value knows nothing yet.
type Changes struct {
	axis   Axis
	parts  map[string]string
	points map[string]map[string]map[float64]float64 // by chart, series and index
}

// Snapshot is all of a page, which must be whole.
func Snapshot(l *Live) ([]byte, error) {
	parts, err := l.parts()
	if err != nil {
		return nil, err
	}
	return encode(change{Parts: parts, Time: &l.Time, Charts: l.charts()})
}

// encode leaves HTML as it is: no script reads it as part of a page.
func encode(c change) ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(c); err != nil {
		return nil, fmt.Errorf("write what is new: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// Begin takes a whole page for what viewers have.
func (c *Changes) Begin(l *Live) error {
	parts, err := l.parts()
	if err != nil {
		return err
	}
	c.axis, c.parts, c.points = l.Time, parts, map[string]map[string]map[float64]float64{}
	for id, chart := range l.charts() {
		c.points[id] = map[string]map[float64]float64{}
		for _, s := range chart.Series {
			known := map[float64]float64{}
			for i, at := range s.At {
				known[at] = s.Values[i]
			}
			c.points[id][s.Name] = known
		}
	}
	return nil
}

// Delta is what is new; nil for nothing. ok is false where a viewer needs a snapshot: a chart or a line is new.
func (c *Changes) Delta(l *Live) (delta []byte, ok bool, err error) {
	if c.points == nil || !l.Partial && l.Time.From != c.axis.From {
		return nil, false, nil
	}
	shift := float64((l.Time.From - c.axis.From) / step)
	out := change{Points: map[string]fresh{}}
	for id, chart := range l.charts() {
		for _, s := range chart.Series {
			known := c.points[id][s.Name]
			if known == nil {
				return nil, false, nil
			}
			if p := newPoints(known, s, shift, l.Partial); len(p.At) > 0 {
				if out.Points[id] == nil {
					out.Points[id] = fresh{}
				}
				out.Points[id][s.Name] = p
			}
			if l.Partial {
				forget(known, shift)
			}
		}
	}
	if out.Parts, err = l.parts(); err != nil {
		return nil, false, err
	}
	for id, html := range out.Parts {
		if c.parts[id] == html {
			delete(out.Parts, id)
		} else {
			c.parts[id] = html
		}
	}
	axis := c.axis
	if axis.N, axis.Lines = max(axis.N, int(shift)+l.Time.N), l.Time.Lines; axis.N != c.axis.N || !slices.Equal(axis.Lines, c.axis.Lines) {
		c.axis, out.Time = axis, &axis
	}
	if len(out.Parts)+len(out.Points) == 0 && out.Time == nil {
		return nil, true, nil
	}
	delta, err = encode(out)
	return delta, true, err
}

// newPoints are the points of a series that are not known, or were another value; they are known then. At the beginning of
// a page of the last points nothing but a bar is whole.
func newPoints(known map[float64]float64, s Series, shift float64, partial bool) (out points) {
	for i, at := range s.At {
		if partial && at == 0 && s.Style != "bars" {
			continue
		}
		value := s.Values[i]
		was, there := known[at+shift]
		if there && (was == value || math.IsNaN(was) && math.IsNaN(value)) {
			continue
		}
		known[at+shift] = value
		out.At, out.Values = append(out.At, at+shift), append(out.Values, value)
	}
	return out
}

// forget drops the points that do not change any more.
func forget(known map[float64]float64, before float64) {
	if len(known) < 2*most {
		return
	}
	for at := range known {
		if at < before {
			delete(known, at)
		}
	}
}
