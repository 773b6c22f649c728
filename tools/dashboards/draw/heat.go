package draw

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/prometheus/common/model"
)

// heat draws a row for each bucket, darker where more fell into it. Each line has what those below it have.
func (s *sheet) heat(b box, lines []line) {
	bound := func(l line) float64 { v, _ := strconv.ParseFloat(l.name, 64); return v }
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(bound(a), bound(b)) })
	plot := box{x: b.x + 68, y: b.y + 28, w: b.w - 80, h: b.h - 52}
	x := s.timeAxis(plot)
	height, width := plot.h/float64(len(lines)), plot.w*s.view.Range.Step.Seconds()/s.view.Range.End.Sub(s.view.Range.Start).Seconds()
	below, most := map[model.Time]float64{}, 0.
	for i := range lines {
		for j, p := range lines[i].Values {
			lines[i].Values[j].Value -= model.SampleValue(below[p.Timestamp])
			below[p.Timestamp] = float64(p.Value)
			most = max(most, float64(lines[i].Values[j].Value))
		}
	}
	for i, l := range lines {
		y := plot.y + plot.h - float64(i+1)*height
		s.rule(plot.x, y+height, plot.w, "#e4e4e4", "none")
		name := "more"
		if !math.IsInf(bound(l), 1) {
			name = "≤ " + format(bound(l), units.Seconds)
		}
		s.text(plot.x-6, y+height/2+4, 10, "#666", "end", name)
		for _, p := range l.Values {
			if p.Value > 1e-9 {
				s.rect(box{x(p.Timestamp.Time()), y, width, height}, "#c2500c", .1+.9*math.Pow(float64(p.Value)/most, .3))
			}
		}
	}
}
