package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// ActionTitle names an action of a run.
func ActionTitle(a *verdict.Action) string { return "Action " + a.Name }

// ActionFacts say what an action was, how it ended, and what became of the streams meanwhile.
func ActionFacts(a *verdict.Action) []verdict.Fact {
	var out list
	out.add("command", "%s", a.Command)
	if !a.Began() {
		out.add("planned", "%s after the start; %s", format.Duration(a.At), a.Ended())
		return out
	}
	out.add("began", "%s, %s after the start", format.Moment(a.StartedUnix), format.Duration(a.At))
	out.add("ended", "after %s: %s", format.Milliseconds(1000*(a.EndedUnix-a.StartedUnix)), a.Ended())
	if lines := strings.Split(a.Output, "\n"); a.Output != "" {
		const most = 3
		out.add("said", "%s", strings.Join(lines[max(len(lines)-most, 0):], " / "))
	}
	if a.Effect != nil {
		out.effect(a.Effect)
	}
	return out
}

// effect is what became of the streams.
func (l *list) effect(e *verdict.Effect) {
	switch {
	case e.Lost == 0:
		l.add("lost", "no stream")
	default:
		again := ""
		if e.Times > e.Lost {
			again = fmt.Sprintf(", %s in all", format.Count(e.Times, "outage"))
		}
		l.add("lost", "%s%s, the first %s after the action began", format.Count(e.Lost, "stream"), again, format.Milliseconds(1000**e.FirstLost))
		l.add("back", "50 %% %s, 99 %% %s, 100 %% %s", after(e.Back50), after(e.Back99), after(e.Back100))
		if e.Never > 0 {
			l.add("", "%s never came back", format.Count(e.Never, "stream"))
		}
		l.add("connects", "at most %s in a second", format.Thousands(e.Peak))
		l.add("refused", "%s", refused(e))
		l.add("slowest", "%s, without a stream for %s from %s on", e.Slowest.ID, format.Milliseconds(1000*e.Slowest.Seconds), format.Moment(e.Slowest.Unix))
	}
	resumed := ""
	switch {
	case e.Lost == 0:
	case e.Resumed == nil:
		resumed = " not known how many resumed,"
	default:
		resumed = " " + format.Thousands(*e.Resumed) + " resumed,"
	}
	l.add("messages", "%s missed,%s %s duplicated", format.Thousands(e.Missed), resumed, format.Thousands(e.Doubled))
	if e.NotResumed > 0 {
		l.add("", "%s published around an outage did not arrive, because the client could not resume", format.Count(e.NotResumed, "more message"))
	}
	l.add("counted", "until %s", format.Moment(e.Until))
	for _, note := range e.Notes {
		l.add("", "%s", note)
	}
}

func after(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return "after " + format.Milliseconds(1000**seconds)
}

func refused(e *verdict.Effect) string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(e.Refused)) {
		all = append(all, format.Count(e.Refused[reason], "attempt")+" by "+reason)
	}
	if len(all) == 0 {
		return "no attempt"
	}
	return strings.Join(all, ", ")
}

// actionTable is a section of a Markdown report.
func actionTable(a *verdict.Action) verdict.Table {
	t := verdict.Table{Title: ActionTitle(a), Columns: []string{"", "figures"}}
	for _, f := range ActionFacts(a) {
		t.Rows = append(t.Rows, []string{f.Name, f.Value})
	}
	return t
}
