package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// plainInterval is the maximum time between two lines of progress if there is no terminal.
const plainInterval = 30 * time.Second

// A display shows the progress of the runners: on a terminal as lines that are redrawn, elsewhere as one line per
// interval.
type display struct {
	out      *console
	terminal bool
	total    time.Duration // approximate length of the run
	started  time.Time
	line     func() string // returns the line of all runners
	full     *fullDisplay  // nil: only the line of all runners
}

func (s *session) display(m *meter) *display {
	d := &display{
		out: stderr, terminal: term.IsTerminal(int(os.Stderr.Fd())), total: s.duration(), started: cmp.Or(s.runStart, time.Now()),
		line: func() string { return s.progress(m) },
	}
	if s.Progress == plan.ProgressFull {
		d.full = &fullDisplay{watch: s.watch, runners: s.runnersHere(), noun: s.service.Noun()}
	}
	return d
}

func (d *display) show(ctx context.Context) {
	interval := time.Second
	if !d.terminal {
		interval = min(plainInterval, max(d.total/6, time.Second))
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	d.redraw()
	for {
		select {
		case <-ctx.Done():
			d.writeNews()
			d.redraw()
			d.out.endBlock()
			return
		case <-seconds.C:
			d.writeNews()
			d.redraw()
		case <-tick.C:
			if !d.terminal {
				fmt.Fprintf(d.out, "%s/%s %s\n", clock(time.Since(d.started)), clock(d.total), d.line())
			}
		}
	}
}

// writeNews writes the findings since the last call, with --progress full only.
func (d *display) writeNews() {
	if d.full != nil {
		d.full.writeFindings(d.out)
	}
}

func (d *display) redraw() {
	if !d.terminal {
		return
	}
	const width = 20
	elapsed := min(time.Since(d.started), d.total)
	filled := int(width * elapsed / max(d.total, 1))
	lines := []string{fmt.Sprintf("%s/%s [%s%s] %s", clock(elapsed), clock(d.total), strings.Repeat("=", filled), strings.Repeat("-", width-filled), d.line())}
	if d.full != nil {
		for _, index := range d.full.runners {
			lines = append(lines, d.full.line(index, time.Now()))
		}
	}
	d.out.draw(lines)
}

// progress returns the line of all runners. The counts come first, because a narrow terminal truncates the line.
func (s *session) progress(m *meter) string {
	sum, lateness := s.watch.Total()
	var parts []string
	switch p := s.localPlan(); {
	case s.Suite.Plan.BySettings && !s.service.CountsMessages():
		parts = append(parts, fmt.Sprintf("%d/%d open", sum.Open, p.Connections), format.Plural(sum.Heartbeats, "heartbeat", "heartbeats"))
	case s.Suite.Plan.BySettings:
		parts = append(parts, fmt.Sprintf("%d/%d open", sum.Open, p.Connections),
			s.receivedText(sum.Received, p.Connections*p.MinNoopsPerStream()), fmt.Sprintf("%d missed", sum.Missed()))
	case s.Suite.Target.Streams:
		parts = append(parts, fmt.Sprintf("%d open · %s · %d missed · %d late", sum.Open, format.Plural(sum.Received, "noop", "noops"), sum.Missed(), sum.Late))
	default:
		if sum.Stage != "" {
			parts = append(parts, sum.Stage)
		}
		parts = append(parts, format.Plural(sum.Requests, "request", "requests"), fmt.Sprintf("%d failed", sum.Failed))
	}
	for _, problem := range []struct {
		count int
		name  string
	}{
		{sum.Refused, "refused"}, {sum.Dropped, "dropped"}, {sum.DroppedByScript, cmp.Or(s.Suite.Page.Ended, "dropped by the script")},
		{sum.Reconnected, format.Form(sum.Reconnected, "reconnect", "reconnects")},
		{int(min(sum.Faults(), 1<<30)), "faulty " + format.Form(sum.Faults(), s.service.Noun(), s.messages())},
	} {
		if problem.count > 0 && s.Suite.Plan.BySettings {
			parts = append(parts, fmt.Sprintf("%d %s", problem.count, problem.name))
		}
	}
	if sum.Published > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d confirmed", sum.Confirmed, sum.Published))
	}
	if lateness.Count() > 0 && s.Suite.Plan.BySettings {
		parts = append(parts, "late p99 "+format.Duration(lateness.Quantile(.99)))
	}
	if b := m.backend(); b != "" {
		parts = append(parts, b)
	}
	return strings.Join(parts, " · ")
}

// receivedText states how many messages were received, and how many are planned if that follows from the interval. A
// stream may receive one message more than planned, at its end.
func (s *session) receivedText(count uint64, planned int) string {
	if s.service.CountBasis != shard.CountByInterval || s.Plan.Published() {
		return s.receivedMessages(count)
	}
	return fmt.Sprintf("%d/%d %s", count, max(planned, int(min(count, 1<<62))), s.messages())
}

func (s *session) receivedMessages(count uint64) string {
	return format.Plural(count, s.service.Noun(), s.messages())
}

// clock formats a duration as MM:SS, or as H:MM:SS from one hour on.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// A fullDisplay has the additional lines of --progress full: one for each runner, and one for each finding.
type fullDisplay struct {
	watch         *live.Watch
	runners       []int
	noun          string // the word for a message
	nextFinding   int    // number of the first finding that is not written yet
	unlistedCount int    // number of unlisted findings in the lines written so far
}

func (s *session) runnersHere() (out []int) {
	for i := range s.Plan.Runners {
		if s.runnerNumber == 0 || s.runnerNumber == i+1 {
			out = append(out, i+1)
		}
	}
	return out
}

// line returns the line of one runner. Its bars are the p99 of lateness in the last buckets, from 1 ms to 1 s.
func (f *fullDisplay) line(index int, now time.Time) string {
	name := fmt.Sprintf("runner %-3d", index)
	runners := f.watch.Runners()
	i := slices.IndexFunc(runners, func(r live.Runner) bool { return r.Index == index })
	if i < 0 {
		return name + " starting"
	}
	r := &runners[i]
	parts := []string{fmt.Sprintf("%d open", r.Open), format.Plural(r.Received, f.noun, f.noun+"s"), fmt.Sprintf("%d missed", r.Missed())}
	if r.Requests > 0 && r.Received == 0 {
		parts = []string{format.Plural(r.Requests, "request", "requests"), fmt.Sprintf("%d failed", r.Failed)}
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
		fmt.Fprintf(&lines, "%s and %s at the same moment\n", time.Now().UTC().Format(time.TimeOnly), format.Count(count, "more finding"))
	}
	f.unlistedCount = unlisted
	if lines.Len() > 0 {
		_, _ = io.WriteString(out, lines.String()) // a closed terminal does not end a run
	}
}
