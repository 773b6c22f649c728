package draw

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aclements/go-moremath/scale"
	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/tools/dashboards"
)

const (
	legendLines = 3
	legendLine  = 14
)

var palette = []string{"#3a77b5", "#e08a2c", "#4d9a4d", "#c94f4f", "#8466ad", "#8a6355", "#cf77ab", "#7a7a7a", "#a8a632", "#3aa5b5"}

// graph draws lines over time, the limit, the phases, and a legend with the latest values.
func (s *sheet) graph(p *dashboards.Panel, b box, lines []line) {
	if p.Stacked {
		stack(lines)
	}
	ticks := ticks(p, lines)
	low, high := ticks[0], ticks[len(ticks)-1]
	plot := box{x: b.x + 68, y: b.y + 28, w: b.w - 80, h: b.h - 52 - legendLines*legendLine}
	x := s.timeAxis(plot)
	y := func(v float64) float64 { return plot.y + plot.h*(high-v)/(high-low) }
	for _, m := range s.marks {
		s.rect(box{x: x(m.from), y: plot.y, w: max(x(m.to)-x(m.from), 1), h: plot.h}, m.colour, .09)
	}
	for _, v := range ticks {
		s.rule(plot.x, y(v), plot.w, "#e4e4e4", "none")
		s.text(plot.x-6, y(v)+4, 10, "#666", "end", format(v, p.Unit))
	}
	if p.Limit != nil {
		s.rule(plot.x, y(p.Limit.At), plot.w, "#d0342c", "5 4")
	}
	for i, l := range lines {
		fmt.Fprintf(s, `<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`+"\n", path(l.Values, x, y, s.view.Range.Step), palette[i%len(palette)])
	}
	s.legend(p, b, lines)
}

// timeAxis writes the times below a plot, and returns where one is.
func (s *sheet) timeAxis(plot box) (x func(time.Time) float64) {
	from, length := s.view.Range.Start, s.view.Range.End.Sub(s.view.Range.Start)
	x = func(t time.Time) float64 { return plot.x + plot.w*t.Sub(from).Seconds()/length.Seconds() }
	for i, anchor := range []string{"start", "middle", "middle", "end"} {
		at := from.Add(length * time.Duration(i) / 3)
		s.text(x(at), plot.y+plot.h+14, 10, "#666", anchor, at.UTC().Format(time.TimeOnly))
	}
	return x
}

// path breaks where points are missing.
func path(points []model.SamplePair, x func(time.Time) float64, y func(float64) float64, step time.Duration) string {
	var out strings.Builder
	for i, p := range points {
		verb := "L"
		if i == 0 || p.Timestamp.Sub(points[i-1].Timestamp) > 2*step {
			verb = "M"
		}
		fmt.Fprintf(&out, "%s%.1f %.1f", verb, x(p.Timestamp.Time()), y(float64(p.Value)))
	}
	return out.String()
}

// legend names as many lines as have room, in columns; the rest it counts.
func (s *sheet) legend(p *dashboards.Panel, b box, lines []line) {
	columns := max(int(b.w/190), 1)
	for i, l := range lines {
		x, y := b.x+10+float64(i%columns)*(b.w-16)/float64(columns), b.y+b.h-float64(legendLines-i/columns)*legendLine+8
		if i == columns*legendLines-1 && i < len(lines)-1 {
			s.text(x+18, y, 10, "#444", "start", fmt.Sprintf("and %d more", len(lines)-i))
			return
		}
		name := []rune(strings.NewReplacer("127.0.0.1", "", "  ", " ").Replace(l.name))
		if len(name) > 26 {
			name = append(name[:25], '…')
		}
		s.rule(x, y-4, 14, palette[i%len(palette)], "none")
		s.text(x+18, y, 10, "#444", "start", string(name)+"  "+format(l.last, p.Unit))
	}
}

// stack puts each line on top of the sum of those before it.
func stack(lines []line) {
	sum := map[model.Time]model.SampleValue{}
	for _, l := range lines {
		for i := range l.Values {
			sum[l.Values[i].Timestamp] += l.Values[i].Value
			l.Values[i].Value = sum[l.Values[i].Timestamp]
		}
	}
}

// ticks are round values, in the unit, around all that is shown: lines, 0 and the limit.
func ticks(p *dashboards.Panel, lines []line) []float64 {
	s := scale.Linear{}
	if p.Limit != nil {
		s.Min, s.Max = min(0, p.Limit.At), max(0, p.Limit.At)
	}
	for _, l := range lines {
		for _, point := range l.Values {
			s.Min, s.Max = min(s.Min, float64(point.Value)), max(s.Max, float64(point.Value))
		}
	}
	if s.Min == s.Max {
		s.Max++
	}
	if p.Unit == units.BytesIEC {
		s.Base = 2
	}
	few := scale.TickOptions{Max: 7}
	s.Nice(few)
	major, _ := s.Ticks(few)
	return major
}

// A step is a multiple of a unit with a name of its own.
type step struct {
	size float64
	name string
}

// steps ascend. Every unit that a panel has is here, but those that are a suffix.
var steps = map[string][]step{
	units.PercentUnit:      {{.01, "%"}},
	units.Seconds:          {{1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}},
	units.BytesIEC:         {{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}},
	units.BytesSI:          {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}},
	units.BytesPerSecondSI: {{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}},
	units.NoUnit:           {{1, ""}},
}

// format writes a value in a unit of Grafana with three significant digits or all those before the point, about as Grafana does.
func format(v float64, unit string) string {
	all := steps[unit]
	if suffix, ok := strings.CutPrefix(unit, "suffix:"); ok {
		all = []step{{1, suffix}}
	}
	best := all[0]
	for _, s := range all {
		if s.size <= math.Abs(v) || v == 0 && s.size == 1 {
			best = s
		}
	}
	v /= best.size
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if math.Abs(v) >= 100 {
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strings.TrimSpace(text + " " + best.name)
}
