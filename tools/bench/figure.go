package main

import (
	"math"
	"slices"
	"strconv"
)

// Verdict is what a figure is against its limit.
type Verdict string

// A figure without limit, or at a size the limit is not meant for, is none of the others.
const (
	Pass      Verdict = "PASS"
	Over      Verdict = "OVER"
	Undecided Verdict = "undecided" // the limit lies within the uncertainty
	None      Verdict = ""
)

// A Figure is one line of the table.
type Figure struct {
	Section    string  `json:"section"`
	Measured   string  `json:"measured"` // when
	Name       string  `json:"name"`
	Definition string  `json:"definition"` // one line: what was measured how
	Unit       string  `json:"unit"`
	Value      float64 `json:"value"`
	Low        float64 `json:"low"` // smallest and largest of the repetitions,
	High       float64 `json:"high"`
	Interval   bool    `json:"confidence_interval,omitempty"` // or the 95 % confidence interval
	Limit      float64 `json:"limit,omitempty"`               // 0: none
	Verdict    Verdict `json:"verdict,omitempty"`
	Peers      string  `json:"peers,omitempty"` // published in DESIGN.md and issue 2, same unit
}

// single is a figure that was measured once.
func single(name, unit string, value float64) Figure {
	return Figure{Name: name, Unit: unit, Value: value, Low: value, High: value}
}

// repeated is the median of several measurements.
func repeated(name, unit string, values []float64) Figure {
	return Figure{Name: name, Unit: unit, Value: median(values), Low: slices.Min(values), High: slices.Max(values)}
}

// limited sets the limit, means the definition and peers the others' figures.
func (f Figure) limited(limit float64) Figure   { f.Limit = limit; return f }
func (f Figure) means(definition string) Figure { f.Definition = definition; return f }
func (f Figure) peers(others string) Figure     { f.Peers = others; return f }

// judge compares with the limit. Where there is a confidence interval, the limit must lie
// outside of it for a verdict.
func (f *Figure) judge(quick bool) {
	low, high := f.Value, f.Value
	if f.Interval {
		low, high = f.Low, f.High
	}
	switch {
	case quick || f.Limit == 0:
		f.Verdict = None
	case high <= f.Limit:
		f.Verdict = Pass
	case low > f.Limit || math.IsNaN(f.Value):
		f.Verdict = Over
	default:
		f.Verdict = Undecided
	}
}

// text is the value with the spread of its repetitions.
func (f Figure) text() string {
	s := short(f.Value)
	if f.Low != f.High {
		s += " (" + short(f.Low) + "…" + short(f.High) + ")"
	}
	return s + " " + f.Unit
}

// short writes three significant digits, or all before the point.
func short(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1, a == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// median of values, NaN of none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
