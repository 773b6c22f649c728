package report

import (
	"math"
	"strings"
	"time"
)

// A Spark is a row of small bars, one for each value. Their scale begins at 0.
type Spark struct {
	Label  string       // description of the values
	Values []float64    // NaN: a gap
	Top    float64      // end of the scale; 0: the largest value
	Tones  map[int]Tone // tones of bars, by the index of the value
}

var bars = []rune("▁▂▃▄▅▆▇█")

// Bars returns one cell for each value. The text of a cell is one character: a bar, or a space for a gap.
func (s *Spark) Bars() []Cell {
	top := s.Top
	for _, v := range s.Values {
		if s.Top == 0 && v > top {
			top = v
		}
	}
	out := make([]Cell, len(s.Values))
	for i, v := range s.Values {
		out[i] = Cell{Text: string(bars[0]), Tone: s.Tones[i]}
		switch {
		case math.IsNaN(v):
			out[i].Text = " "
		case top > 0:
			height := math.Round(min(max(v, 0)/top, 1) * float64(len(bars)-1))
			out[i].Text = string(bars[int(height)])
		}
	}
	return out
}

// String returns the bars as text, without their tones.
func (s *Spark) String() string {
	var out strings.Builder
	for _, b := range s.Bars() {
		out.WriteString(b.Text)
	}
	return out.String()
}

// SparkOf returns the bars of durations, on a logarithmic scale from 1 ms to 1 s. A negative duration is a gap.
func SparkOf(durations []time.Duration) *Spark {
	s := &Spark{Label: "from 1 ms to 1 s", Top: math.Log10(1000)}
	for _, d := range durations {
		v := math.NaN()
		if d >= 0 {
			v = math.Log10(max(float64(d)/float64(time.Millisecond), 1))
		}
		s.Values = append(s.Values, v)
	}
	return s
}
