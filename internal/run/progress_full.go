package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/run/live"
)

// A fullDisplay has the additional lines of --progress full: one for each runner, and one for each finding.
type fullDisplay struct {
	watch         *live.Watch
	runners       []int
	noun          string // the word for messages
	nextFinding   int    // number of the first finding that is not written yet
	unlistedCount int    // number of unlisted findings in the lines written so far
}

// runnersHere returns the indices of the runners of this session.
func (s *session) runnersHere() (out []int) {
	for i := range s.Plan.Runners {
		if s.part == 0 || s.part == i+1 {
			out = append(out, i+1)
		}
	}
	return out
}

// line returns the line of one runner. Its bars are the p99 of lateness in the last two minutes, from 1 ms to 1 s.
func (f *fullDisplay) line(index int, now time.Time) string {
	name := fmt.Sprintf("runner %-3d", index)
	runners := f.watch.Runners()
	i := slices.IndexFunc(runners, func(r live.Runner) bool { return r.Index == index })
	if i < 0 {
		return name + " starting"
	}
	r := &runners[i]
	parts := []string{fmt.Sprintf("%d open", r.Open), fmt.Sprintf("%d %s", r.Received, f.noun), fmt.Sprintf("%d missed", r.Missed())}
	if r.Requests > 0 && r.Received == 0 {
		parts = []string{fmt.Sprintf("%d requests", r.Requests), fmt.Sprintf("%d failed", r.Failed)}
	}
	if r.Undecided > 0 {
		parts = append(parts, fmt.Sprintf("%d undecided", r.Undecided))
	}
	if late, ok := r.LastLate(); ok {
		parts = append(parts, "late p99 "+format.Duration(late)+" "+report.SparkOf(r.Late).String())
	}
	if r.Process.RSS > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% %d MiB", r.Process.CPUPercent, r.Process.RSS>>20))
	}
	if words, _ := r.Health(now); words != "ok" {
		parts = append(parts, words)
	}
	return name + " " + strings.Join(parts, " · ")
}

// writeFindings writes the findings since the last call, a line each.
func (f *fullDisplay) writeFindings(out io.Writer) {
	findings, next, unlisted := f.watch.Findings(f.nextFinding)
	f.nextFinding = next
	var lines strings.Builder
	for _, finding := range findings {
		if finding.Runner == 0 {
			continue // warn or runAction has printed it
		}
		fmt.Fprintf(&lines, "%s %s\n", finding.At.UTC().Format(time.TimeOnly), finding.Sentence())
	}
	if count := unlisted - f.unlistedCount; count > 0 {
		fmt.Fprintf(&lines, "%s and %d more connections in the same moment\n", time.Now().UTC().Format(time.TimeOnly), count)
	}
	f.unlistedCount = unlisted
	if lines.Len() > 0 {
		_, _ = io.WriteString(out, lines.String()) // a closed terminal does not end a run
	}
}
