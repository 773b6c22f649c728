package report

import (
	"math"
	"strconv"
)

// An Axis is the time that all charts over time share: points Step seconds apart.
type Axis struct {
	From  int64  `json:"from"` // Unix, seconds
	Step  int64  `json:"step"`
	N     int    `json:"n"`
	Bands []Band `json:"bands"`
	Lines []Line `json:"lines,omitempty"`
}

// A Line is drawn on every chart over time: the start of an action.
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

// A Kind is how a chart is drawn; the script has a module for each.
type Kind string

// The kinds.
const (
	Timeline Kind = "timeline"
	Quantile Kind = "quantiles" // over 1 / (1 − q), logarithmic
	Heatmap  Kind = "heatmap"   // counts over time
)

// A Chart is one drawing.
type Chart struct {
	ID     string   `json:"id"`
	Kind   Kind     `json:"kind"`
	Title  string   `json:"title"`
	Note   string   `json:"-"`
	Unit   string   `json:"unit"` // behind values: "ms", "MiB", "%", "" for counts
	Wide   bool     `json:"-"`
	Log    bool     `json:"log,omitempty"`
	Series []Series `json:"series,omitempty"`
	Heat   *Heat    `json:"heat,omitempty"`
}

// A Series is one line. At are indices into the time axis, or the x values of a chart with another axis; Values are
// NaN (null) where the line has a gap.
type Series struct {
	Name   string  `json:"name"`
	Style  string  `json:"style,omitempty"` // "": line, "area", "dashed", "steps" (dashed), "bars"
	At     Numbers `json:"at"`
	Values Numbers `json:"values"`
}

// A Heat is counts by time and row. Rows are named by their upper edge.
type Heat struct {
	What   string   `json:"what"` // is counted
	Rows   []string `json:"rows"`
	Width  int      `json:"width"`  // of a column, in steps of the time axis
	Counts [][]int  `json:"counts"` // by column, then row
}

// Numbers are written with five digits; more are not visible on a screen.
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

// maxPoints is the maximum number of points of a series in a chart: as many as a wide screen has columns.
const maxPoints = 1200

// splitAtGaps returns a series of values on the time axis. Points further apart than gap steps are not joined; NaN is
// not a point.
func splitAtGaps(name, style string, values []float64, gap int) Series {
	s := Series{Name: name, Style: style}
	known := 0
	for _, v := range values {
		if !math.IsNaN(v) {
			known++
		}
	}
	for _, part := range splitRuns(values, gap) {
		share := max(len(part)*maxPoints/max(known, 1), 2)
		if len(s.At) > 0 {
			s.At, s.Values = append(s.At, s.At[len(s.At)-1]+1), append(s.Values, math.NaN())
		}
		for _, p := range lttb(part, share) {
			s.At, s.Values = append(s.At, p.x), append(s.Values, p.y)
		}
	}
	return s
}

type point struct{ x, y float64 }

// splitRuns returns the stretches of known values that are no further apart than gap.
func splitRuns(values []float64, gap int) (out [][]point) {
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

// lttb thins points out to n of them by largest triangles (Steinarsson, 2013): in each of n
// stretches the point stays that makes the largest triangle with the one before and the mean
// of the stretch after it. It keeps the shape; what is found in series is found in all points.
func lttb(all []point, n int) []point {
	if n >= len(all) || n < 3 {
		if len(all) > 2 && n < 3 {
			return []point{all[0], all[len(all)-1]}
		}
		return all
	}
	out := make([]point, 0, n)
	out = append(out, all[0])
	edge := func(i int) int { return 1 + i*(len(all)-2)/(n-2) }
	for i := range n - 2 {
		from, to := edge(i), edge(i+1)
		next := all[to:min(edge(i+2), len(all))]
		if i == n-3 {
			next = all[len(all)-1:]
		}
		var mean point
		for _, p := range next {
			mean.x += p.x / float64(len(next))
			mean.y += p.y / float64(len(next))
		}
		before, best, largest := out[len(out)-1], all[from], -1.0
		for _, p := range all[from:to] {
			area := math.Abs((before.x-mean.x)*(p.y-before.y) - (before.x-p.x)*(mean.y-before.y))
			if area > largest {
				best, largest = p, area
			}
		}
		out = append(out, best)
	}
	return append(out, all[len(all)-1])
}
