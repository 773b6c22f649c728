package report

import (
	"fmt"
	"math"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A distribution is a row of a table, and a line of a chart by percentile.
type distribution struct {
	name string
	h    *shard.Histogram
}

func (s *pageBuilder) lateness() Section {
	switch {
	case s.v.Service.ComparesClients():
		return s.spread()
	case !s.v.Service.HasInterval():
		return s.latency()
	}
	out := Section{ID: "lateness-all", Title: "Lateness"}
	if s.Merged.Lateness.Count() == 0 {
		return out
	}
	list := []distribution{{"lateness (gap − interval)", s.Merged.Lateness}}
	if l := s.Merged.Latency; l != nil && l.Histogram.Count() > 0 {
		name := "latency (above the fastest " + s.v.Service.Noun() + ")"
		if s.hasSendTime() {
			name = "latency (receive − send)"
		}
		list = append(list, distribution{name, s.latencies(l)})
	}
	s.distributions(&out, list, "lateness")
	out.Notes = append(out.Notes, "Lateness needs no common clock. A "+s.v.Service.Noun()+" that arrives early makes the next one late by the same amount. Percentiles come from merged histograms, whose buckets are 0.8 % wide.")
	return out
}

// hasSendTime reports whether latency is measured from the time of sending, and not from the fastest message.
func (s *pageBuilder) hasSendTime() bool {
	return s.v.LatencyMS != nil && s.v.LatencyMS.Above == verdict.AboveSend
}

func (s *pageBuilder) latencies(l *shard.Latency) *shard.Histogram {
	if !s.hasSendTime() {
		return l.Histogram
	}
	h := shard.NewHistogram()
	h.MergeShifted(l.Histogram, time.Duration(l.MinUS)*time.Microsecond)
	return h
}

// distributions sets the table and the charts of a section. It adds the connect times and the times to the first
// message to the list. heatName describes the values of the heat map.
func (s *pageBuilder) distributions(out *Section, list []distribution, heatName string) {
	list = append(list, distribution{"connect (dial to headers)", s.Merged.Connect}, distribution{"first " + s.v.Service.Noun() + " (after headers)", s.Merged.FirstMessage})
	chart := &Chart{ID: "quantiles", Kind: Quantile, Title: "By percentile", Note: "both axes are logarithmic; rare values are on the right", Unit: "ms", Wide: true}
	t := Table{Columns: Columns("duration", "#count", "#p50", "#p90", "#p99", "#p99.9", "#max")}
	for _, d := range list {
		if d.h.Count() == 0 {
			continue
		}
		row := Cells(d.name, format.Thousands(d.h.Count()))
		t.Rows = append(t.Rows, append(row, timeQuantiles(d.h, .5, .9, .99, .999, 1)...))
		chart.Series = append(chart.Series, percentiles(d.name, d.h))
	}
	out.Tables, out.Charts = []Table{t}, []*Chart{chart}
	if bursts := verdict.Bursts(s.Merged.Bursts, s.v.Service.Noun()); bursts != "" {
		out.Notes = append(out.Notes, bursts+".")
	}
	if heat := s.heat(); heat != nil {
		out.Charts = append(out.Charts, &Chart{
			ID: "heat", Kind: Heatmap, Title: "Over time", Wide: true, Heat: heat,
			Note: fmt.Sprintf("%s of %s %s; stronger colors mean more of them", heatName, s.nouns(false), eachPeriod(heat.Width*int(s.series.step))),
		})
	}
}

// percentiles returns the points x = 1 / (1 − q), y = milliseconds. The last point is the maximum, at x = number of
// values.
func percentiles(name string, h *shard.Histogram) Series {
	const perDecade = 24
	out := Series{Name: name}
	n := float64(h.Count())
	for i := 0; ; i++ {
		x := math.Pow(10, float64(i)/perDecade)
		if x >= n {
			break
		}
		out.At, out.Values = append(out.At, x), append(out.Values, format.InMilliseconds(h.Quantile(1-1/x)))
	}
	out.At, out.Values = append(out.At, max(n, 1)), append(out.Values, format.InMilliseconds(h.Max()))
	return out
}

// heatRows has the upper edges of the rows of a heat map. One more row is above the last edge.
var heatRows = []time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

const heatColumns = 240

func (s *pageBuilder) heat() *Heat {
	t := s.series
	if t.n < 2 || t.rows == nil {
		return nil
	}
	width := max((t.n+heatColumns-1)/heatColumns, s.barWidth())
	heat := &Heat{Items: s.nouns(false), Width: width, Counts: make([][]int, (t.n-2)/width+1)}
	for i := range heat.Counts {
		heat.Counts[i] = make([]int, len(heatRows)+1)
	}
	top := 0
	for i, rows := range t.rows {
		for row, n := range rows {
			if n > 0 {
				heat.Counts[(i-1)/width][row] += int(n)
				top = max(top, row)
			}
		}
	}
	top = min(top+1, len(heatRows)) // the empty top row shows that there are no higher values
	for i := range heat.Counts {
		heat.Counts[i] = heat.Counts[i][:top+1]
	}
	for row := range top + 1 {
		if row == len(heatRows) {
			heat.Rows = append(heat.Rows, "> "+edgeLabel(heatRows[row-1]))
		} else {
			heat.Rows = append(heat.Rows, edgeLabel(heatRows[row]))
		}
	}
	return heat
}

func edgeLabel(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%v ms", format.InMilliseconds(d))
	}
	return fmt.Sprintf("%v s", d.Seconds())
}
