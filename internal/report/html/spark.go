package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Spark is a small line over a few values, without axes: from 0 at the bottom to the largest at the top.
type Spark struct {
	Says  string   // for who cannot see it
	Lines []string // points of SVG polylines
	Dots  []Dot
}

// A Dot is one value that the eye should find.
type Dot struct {
	X, Y string
	Tone Tone
}

// The size of a Spark, in pixels.
const (
	sparkWidth  = 180
	sparkHeight = 32
	sparkEdge   = 4 // room for dots
)

// Width and Height are those of its drawing.
func (*Spark) Width() int  { return sparkWidth }
func (*Spark) Height() int { return sparkHeight }

// NewSpark draws values. NaN is a gap, tones are by index. The last value has a dot, and every one with a tone.
func NewSpark(values []float64, tones map[int]Tone, says string) *Spark {
	s := &Spark{Says: says}
	highest := 0.
	for _, v := range values {
		if v > highest { // not for NaN
			highest = v
		}
	}
	last := len(values) - 1
	for last >= 0 && math.IsNaN(values[last]) {
		last--
	}
	var line []string
	for i, v := range values {
		if math.IsNaN(v) {
			s.Lines, line = append(s.Lines, strings.Join(line, " ")), nil
			continue
		}
		share := 0.
		if highest > 0 {
			share = max(v, 0) / highest
		}
		x := fmt.Sprintf("%.1f", sparkEdge+float64(i)*(sparkWidth-2*sparkEdge)/float64(max(len(values)-1, 1)))
		y := fmt.Sprintf("%.1f", sparkHeight-sparkEdge-share*(sparkHeight-2*sparkEdge))
		line = append(line, x+","+y)
		if tone, marked := tones[i]; marked || i == last {
			s.Dots = append(s.Dots, Dot{x, y, tone})
		}
	}
	s.Lines = append(s.Lines, strings.Join(line, " "))
	s.Lines = slices.DeleteFunc(s.Lines, func(points string) bool { return !strings.Contains(points, " ") })
	return s
}
