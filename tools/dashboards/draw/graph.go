package draw

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

const (
	legendLines = 3
	legendLine  = 14
)

// graph draws lines over time, the limit, the phases, and a legend with the latest values.
func (s *sheet) graph(p query.Panel, b box, lines []line, marks []band, w query.Window) {
	if p.Stacked {
		stack(lines)
	}
	low, high := bounds(p, lines)
	scale := ticks(low, high, p.Unit)
	low, high = scale[0], scale[len(scale)-1]
	plot := box{x: b.x + 68, y: b.y + 28, w: b.w - 80, h: b.h - 52 - legendLines*legendLine}
	x := func(t time.Time) float64 {
		return plot.x + plot.w*t.Sub(w.From).Seconds()/w.To.Sub(w.From).Seconds()
	}
	y := func(v float64) float64 { return plot.y + plot.h*(high-v)/(high-low) }
	for _, m := range marks {
		s.rect(box{x: x(m.from), y: plot.y, w: max(x(m.to)-x(m.from), 1), h: plot.h}, m.colour, .09)
	}
	for _, v := range scale {
		s.rule(plot.x, y(v), plot.x+plot.w, y(v), "#e4e4e4", "none")
		s.text(plot.x-6, y(v)+4, 10, "#666", "end", Format(v, p.Unit))
	}
	for i := range 4 {
		at := w.From.Add(w.To.Sub(w.From) * time.Duration(i) / 3)
		s.text(x(at), plot.y+plot.h+14, 10, "#666", []string{"start", "middle", "middle", "end"}[i], at.UTC().Format("15:04:05"))
	}
	if p.Limit != nil {
		s.rule(plot.x, y(*p.Limit), plot.x+plot.w, y(*p.Limit), "#d0342c", "5 4")
	}
	for i, l := range lines {
		fmt.Fprintf(s, `<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`+"\n", path(l.series.Points, x, y, w.Step), palette[i%len(palette)])
	}
	s.legend(p, b, lines)
}

// path breaks where points are missing.
func path(points []query.Point, x func(time.Time) float64, y func(float64) float64, step time.Duration) string {
	var out strings.Builder
	for i, p := range points {
		verb := "L"
		if i == 0 || p.At.Sub(points[i-1].At) > 2*step {
			verb = "M"
		}
		fmt.Fprintf(&out, "%s%.1f %.1f", verb, x(p.At), y(p.Value))
	}
	return out.String()
}

// legend names as many lines as have room, in columns; the rest it counts.
func (s *sheet) legend(p query.Panel, b box, lines []line) {
	columns := max(int(b.w/190), 1)
	room := columns * legendLines
	names := lines
	if len(names) > room {
		names = names[:room-1]
	}
	at := func(i int) (x, y float64) {
		return b.x + 10 + float64(i%columns)*(b.w-16)/float64(columns), b.y + b.h - float64(legendLines-i/columns)*legendLine + 8
	}
	for i, l := range names {
		x, y := at(i)
		s.rule(x, y-4, x+14, y-4, palette[i%len(palette)], "none")
		name := strings.NewReplacer("127.0.0.1", "", "  ", " ").Replace(l.name)
		s.text(x+18, y, 10, "#444", "start", short(name, 26)+"  "+Format(l.last, p.Unit))
	}
	if more := len(lines) - len(names); more > 0 {
		x, y := at(len(names))
		s.text(x+18, y, 10, "#444", "start", fmt.Sprintf("and %d more", more))
	}
}

func short(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}

// stack puts each line on top of the sum of those before it.
func stack(lines []line) {
	sum := map[time.Time]float64{}
	for i, l := range lines {
		points := slices.Clone(l.series.Points)
		for j := range points {
			sum[points[j].At] += points[j].Value
			points[j].Value = sum[points[j].At]
		}
		lines[i].series.Points = points
	}
}

// bounds are the least and the greatest value to be shown, with 0 and the limit among them.
func bounds(p query.Panel, lines []line) (low, high float64) {
	for _, l := range lines {
		for _, point := range l.series.Points {
			low, high = math.Min(low, point.Value), math.Max(high, point.Value)
		}
	}
	if p.Limit != nil {
		low, high = math.Min(low, *p.Limit), math.Max(high, *p.Limit)
	}
	if high == low {
		high = low + 1
	}
	return low, high
}
