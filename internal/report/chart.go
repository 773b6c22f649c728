package report

import (
	"math"
	"strconv"
)

// An Axis is the time axis that all charts over time share. Its points are Step seconds apart.
type Axis struct {
	From  int64  `json:"from"` // Unix, seconds
	Step  int64  `json:"step"`
	N     int    `json:"n"`
	Bands []Band `json:"bands"`
	Lines []Line `json:"lines,omitempty"`
}

// A Line marks the start of an action on every chart over time.
type Line struct {
	Name string  `json:"name"`
	At   float64 `json:"at"` // Unix, seconds
}

// A Band is a phase of the run.
type Band struct {
	Name string  `json:"name"`
	From float64 `json:"from"` // Unix, seconds
	To   float64 `json:"to"`
}

// A Kind is the type of a chart. The script of the page has a module for each kind.
type Kind string

// The kinds of charts.
const (
	Timeline Kind = "timeline"
	Quantile Kind = "quantiles" // the x axis is 1 / (1 − q), logarithmic
	Heatmap  Kind = "heatmap"   // counts over time
)

// A Chart is one chart of a section.
type Chart struct {
	ID     string   `json:"id"`
	Kind   Kind     `json:"kind"`
	Title  string   `json:"title"`
	Note   string   `json:"-"`             // explanation next to the title
	Unit   string   `json:"unit"`          // unit of the values: "ms", "MiB", "%", "" for counts
	Wide   bool     `json:"-"`             // as wide as the page
	Log    bool     `json:"log,omitempty"` // logarithmic y axis
	Series []Series `json:"series,omitempty"`
	Heat   *Heat    `json:"heat,omitempty"`
}

// A Series is one line. At has indices of the time axis, or the x values of a chart with a different axis. Values has
// NaN (null) for a gap in the line.
type Series struct {
	Name   string  `json:"name"`
	Style  string  `json:"style,omitempty"` // "": line, "area", "dashed", "steps" (dashed), "bars"
	At     Numbers `json:"at"`
	Values Numbers `json:"values"`
}

// A Heat has the counts of a heat map by time and row. The name of a row is its upper edge.
type Heat struct {
	Items  string   `json:"items"` // plural noun of the counted items
	Rows   []string `json:"rows"`
	Width  int      `json:"width"`  // width of a column, in steps of the time axis
	Counts [][]int  `json:"counts"` // by column, then row
}

// Numbers are the values of a chart. Their JSON has five significant digits, because more are not visible on a screen.
// Whole numbers below 1e9 are exact.
type Numbers []float64

// MarshalJSON writes NaN and infinite values as null.
func (n Numbers) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 6*len(n)+2)
	out = append(out, '[')
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			out = append(out, "null"...)
		case v == math.Trunc(v) && math.Abs(v) < 1e9:
			out = strconv.AppendInt(out, int64(v), 10)
		default:
			out = strconv.AppendFloat(out, v, 'g', 5, 64)
		}
	}
	return append(out, ']'), nil
}

// maxPoints is the number of points to which a series of a chart is reduced: as many as a wide screen has columns.
const maxPoints = 1200

// splitAtGaps returns a series of values on the time axis, reduced to about maxPoints points, or more if there are many
// gaps. Points that are more than gap steps apart are not joined; NaN is not a point.
func splitAtGaps(name, style string, values []float64, gap int) Series {
	s := Series{Name: name, Style: style}
	count := 0
	for _, v := range values {
		if !math.IsNaN(v) {
			count++
		}
	}
	for _, part := range splitPoints(values, gap) {
		share := max(len(part)*maxPoints/max(count, 1), 2)
		if len(s.At) > 0 {
			s.At, s.Values = append(s.At, s.At[len(s.At)-1]+1), append(s.Values, math.NaN())
		}
		for _, p := range lttb(part, share) {
			s.At, s.Values = append(s.At, p.x), append(s.Values, p.y)
		}
	}
	return s
}

// A point is a known value of a line, and its index on the time axis.
type point struct{ x, y float64 }

func splitPoints(values []float64, gap int) (out [][]point) {
	last := -1
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if last < 0 || i-last > gap {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], point{float64(i), v})
		last = i
	}
	return out
}

// lttb selects n points that keep the shape of the line: Largest-Triangle-Three-Buckets (Steinarsson, 2013). If n is
// less than 3, at most two points remain.
func lttb(points []point, n int) []point {
	if n >= len(points) || n < 3 {
		if len(points) > 2 && n < 3 {
			return []point{points[0], points[len(points)-1]}
		}
		return points
	}
	out := make([]point, 0, n)
	out = append(out, points[0])
	edge := func(i int) int { return 1 + i*(len(points)-2)/(n-2) }
	for i := range n - 2 {
		from, to := edge(i), edge(i+1)
		next := points[to:min(edge(i+2), len(points))]
		if i == n-3 {
			next = points[len(points)-1:]
		}
		var mean point
		for _, p := range next {
			mean.x += p.x / float64(len(next))
			mean.y += p.y / float64(len(next))
		}
		previous, best, largest := out[len(out)-1], points[from], -1.0
		for _, p := range points[from:to] {
			area := math.Abs((previous.x-mean.x)*(p.y-previous.y) - (previous.x-p.x)*(mean.y-previous.y))
			if area > largest {
				best, largest = p, area
			}
		}
		out = append(out, best)
	}
	return append(out, points[len(points)-1])
}
