package report

import (
	"fmt"
	"math"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
)

const (
	// leakMeans is the number of means to which a memory series is reduced before its slope is computed. Neighboring
	// samples are similar, and would make the confidence interval too narrow.
	leakMeans = 60
	// leakWarmUp is the share of the hold phase that is excluded at its start, while heaps still grow.
	leakWarmUp = 0.1
	// leakMinSeconds is the shortest period from which the growth of memory per hour is estimated.
	leakMinSeconds = 300
	// leakShare (of the first quarter) and leakMiB are changes that are normal for a heap. The larger of them applies.
	leakShare, leakMiB = 0.02, 1
)

// leaks returns the slope of memory during the hold phase. The section is empty if the hold phase is too short, or if
// no slope is known.
func (s *pageBuilder) leaks() Section {
	out := Section{ID: "leaks", Title: "Memory over time", Short: "Memory"}
	from, to := s.phases.holdRange(s.series)
	from += int(leakWarmUp * float64(to-from))
	seconds := float64(to-from) * float64(s.series.step)
	if seconds < leakMinSeconds {
		return out
	}
	t := Table{Columns: Columns("process", "#first quarter", "#last quarter", "#change", "#per hour", "95 % interval, per hour", "#per stream and hour", "trend")}
	for _, p := range []struct {
		name   string
		values []float64
	}{{"backend", s.series.backendRSS}, {"nginx", s.series.nginxRSS}, {"runners, all", s.series.runnerRSS}, {"runners, heap in use", s.series.runnerLive}} {
		if row := s.leak(p.name, p.values, from, to); row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) > 0 {
		out.Tables = []Table{t}
		out.Notes = []string{
			fmt.Sprintf("The table covers %s to %s UTC: the hold phase without its first %.0f %%. The quarters are medians: of resident memory or, for the heap in use, of the heap after the latest garbage collection. The slope is the Theil–Sen estimate over means of neighboring samples, with Sen's interval, which assumes that these means are independent.",
				format.Clock(s.series.timeAt(from)), format.Clock(s.series.timeAt(to)), 100*leakWarmUp),
			fmt.Sprintf("“grows”: the whole interval is above 0, and the last quarter is above the first by more than %d MiB and %.0f %%. “grows slightly”: only the interval is above 0; a longer run is needed to decide.", int(leakMiB), 100*leakShare),
		}
	}
	return out
}

// leak returns the row of one process, or nil if its memory or its slope is not known.
func (s *pageBuilder) leak(name string, values []float64, from, to int) Row {
	if values == nil {
		return nil
	}
	hours := make([]float64, to-from)
	for i := range hours {
		hours[i] = float64(i) * float64(s.series.step) / 3600
	}
	growth, ok := resources.SlopeOf(resources.Means(hours, values[from:to], leakMeans))
	if !ok {
		return nil
	}
	quarter := (to - from) / 4
	first, last := resources.Median(numbersOf(values, from, from+quarter)), resources.Median(numbersOf(values, to-quarter, to))
	change := last - first
	trend, tone := "flat", Good
	switch significant := math.Abs(change) > max(leakMiB, leakShare*first); {
	case significant && growth.Low > 0 && change > 0:
		trend, tone = "grows", Bad
	case significant && growth.High < 0 && change < 0:
		trend = "shrinks"
	case growth.Low > 0:
		trend, tone = "grows slightly", ""
	}
	streams := max(s.v.Connections.Opened, 1)
	formatGrowth := func(v float64) string { return format.Change(v, "MiB") }
	row := Cells(name, format.MiB(first), format.MiB(last), formatGrowth(change), formatGrowth(growth.PerUnit),
		formatGrowth(growth.Low)+" to "+formatGrowth(growth.High), formatGrowth(growth.PerUnit/float64(streams)))
	return append(row, Cell{Text: trend, Tone: tone})
}
