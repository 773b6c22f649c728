package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/sse-soak/sse-soak/internal/live"
)

// A fullDisplay is what --progress full shows beside the line of all runners: a line for each, and findings as they come.
type fullDisplay struct {
	watch   *live.Watch
	runners []int
	noun    string // what messages are called
	told    int    // findings
	counted int    // of those that are not listed
}

// runnersHere are the runners that this session hears, by index.
func (s *session) runnersHere() (out []int) {
	for i := range s.Plan.Runners {
		if s.part == 0 || s.part == i+1 {
			out = append(out, i+1)
		}
	}
	return out
}

// bars are the lines of the runners.
func (f *fullDisplay) bars(on *mpb.Progress) (out []*mpb.Bar) {
	for _, index := range f.runners {
		line := decor.Any(func(decor.Statistics) string { return f.line(index, time.Now()) })
		out = append(out, on.New(1, mpb.NopStyle(), mpb.BarFillerTrim(), mpb.PrependDecorators(line)))
	}
	return out
}

// line is that of one runner. Its sparkline is the p99 of lateness in the last two minutes, from 1 ms to 1 s.
func (f *fullDisplay) line(index int, now time.Time) string {
	name := fmt.Sprintf("runner %-3d", index)
	all := f.watch.Runners()
	i := slices.IndexFunc(all, func(r live.Runner) bool { return r.Index == index })
	if i < 0 {
		return name + " starting"
	}
	r := &all[i]
	parts := []string{fmt.Sprintf("%d open", r.Open), fmt.Sprintf("%d %s", r.Received, f.noun), fmt.Sprintf("%d missed", r.Missed())}
	if r.Requests > 0 && r.Received == 0 {
		parts = []string{fmt.Sprintf("%d requests", r.Requests), fmt.Sprintf("%d failed", r.Failed)}
	}
	if r.Undecided > 0 {
		parts = append(parts, fmt.Sprintf("%d undecided", r.Undecided))
	}
	if known := slices.DeleteFunc(slices.Clone(r.Late), func(d time.Duration) bool { return d < 0 }); len(known) > 0 {
		parts = append(parts, fmt.Sprintf("late p99 %.1f ms %s", float64(known[len(known)-1].Microseconds())/1000, live.Spark(r.Late)))
	}
	if r.Process.RSS > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% %d MiB", r.Process.CPUPercent, r.Process.RSS>>20))
	}
	if words, _ := r.Health(now); words != "well" {
		parts = append(parts, words)
	}
	return name + " " + strings.Join(parts, " · ")
}

// tell writes the findings that came since it was last called, a line each.
func (f *fullDisplay) tell(out io.Writer) {
	found, next, unlisted := f.watch.Findings(f.told)
	f.told = next
	var lines strings.Builder
	for _, one := range found {
		if one.Runner == 0 {
			continue // this session said it already
		}
		fmt.Fprintf(&lines, "%s %s\n", one.At.UTC().Format(time.TimeOnly), one.Words())
	}
	if more := unlisted - f.counted; more > 0 {
		fmt.Fprintf(&lines, "%s and %d more connections in the same moment\n", time.Now().UTC().Format(time.TimeOnly), more)
	}
	f.counted = unlisted
	if lines.Len() > 0 {
		_, _ = io.WriteString(out, lines.String()) // a terminal that is gone is no reason to end a run
	}
}
