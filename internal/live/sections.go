package live

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report/html"
)

// mostShown is how many findings the page lists; the report has them all.
const mostShown = 100

// found are the findings, the newest first.
func found(w *Watch) html.Section {
	out := html.Section{ID: "found", Title: "What was found", Short: "Found"}
	listed, all, unlisted := w.Findings(0)
	if all+unlisted == 0 {
		out.Lead = []string{"Nothing yet."}
		return out
	}
	slices.Reverse(listed)
	t := html.Table{Columns: []html.Column{{Name: "UTC"}, {Name: "runner"}, {Name: "connection"}, {Name: "what"}}}
	shown := listed[:min(len(listed), mostShown)]
	for _, f := range shown {
		runner := "–"
		if f.Runner > 0 {
			runner = fmt.Sprint(f.Runner)
		}
		id := f.ID
		if id == "" {
			id = "–"
		}
		t.Rows = append(t.Rows, html.Row{{Text: f.At.UTC().Format(time.TimeOnly), At: float64(f.At.Unix())}, {Text: runner}, {Text: id}, {Text: f.What}})
	}
	out.Tables = []html.Table{t}
	if more := all + unlisted - len(shown); more > 0 {
		out.Notes = []string{format.Count(more, "finding") + " more: the report accounts for all."}
	}
	return out
}

// health is how each runner is.
func health(now time.Time, runners []Runner, requests bool) html.Section {
	out := html.Section{ID: "runners", Title: "Runners"}
	names := []html.Column{{Name: "runner"}, {Name: "state"}}
	numbers := []string{"open", "received", "missed", "undecided", "late p99"}
	if requests {
		numbers = []string{"requests", "failed"}
	}
	for _, name := range append(numbers, "CPU", "memory") {
		names = append(names, html.Column{Name: name, Number: true})
	}
	t := html.Table{Columns: names, Note: "late p99 is of the last 5 s in which something came; the line is of the last two minutes, from 1 ms to 1 s"}
	for i := range runners {
		r := &runners[i]
		words, well := r.Health(now)
		state := html.Cell{Text: words}
		if !well {
			state.Tone = html.Doubt
		}
		row := html.Row{{Text: fmt.Sprint(r.Index)}, state}
		if requests {
			row = append(row, html.Cell{Text: format.Thousands(r.Requests)}, html.Cell{Text: format.Thousands(r.Failed)})
		} else {
			row = append(row, r.counted()...)
		}
		cpu, memory := "–", "–"
		if r.Process.RSS > 0 {
			cpu, memory = fmt.Sprintf("%.0f %%", r.Process.CPUPercent), format.Bytes(r.Process.RSS)
		}
		t.Rows = append(t.Rows, append(row, html.Cell{Text: cpu}, html.Cell{Text: memory}))
	}
	out.Tables = []html.Table{t}
	if len(runners) == 0 {
		out.Tables, out.Lead = nil, []string{"None has said anything yet."}
	}
	return out
}

// counted are the cells of what a runner counted of its streams.
func (r *Runner) counted() html.Row {
	late := "–"
	if known := slices.DeleteFunc(slices.Clone(r.Late), func(d time.Duration) bool { return d < 0 }); len(known) > 0 {
		late = milliseconds(known[len(known)-1]) + " " + Spark(r.Late)
	}
	missed := html.Cell{Text: format.Thousands(r.Missed())}
	if r.Missed() > 0 {
		missed.Tone = html.Bad
	}
	return html.Row{
		{Text: format.Thousands(uint64(max(r.Open, 0)))}, {Text: format.Thousands(r.Received)}, missed, {Text: format.Thousands(r.Undecided)}, {Text: late},
	}
}
