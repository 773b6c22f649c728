package html

import "github.com/sse-soak/sse-soak/internal/report"

// actions are the commands that were run during the run, and what each did to the streams.
func (s *subject) actions() Section {
	out := Section{ID: "actions", Title: "Actions during the run", Short: "Actions"}
	for i := range s.v.Actions {
		a := &s.v.Actions[i]
		t := Table{Caption: report.ActionTitle(a)}
		for _, f := range report.ActionFacts(a) {
			t.Rows = append(t.Rows, cells(f.Name, f.Value))
		}
		out.Tables = append(out.Tables, t)
	}
	if len(out.Tables) > 0 {
		out.Notes = []string{"Each action has a line on every chart over time. Times count from its beginning. A lost stream is laid to the action before it, until the next action begins, or the command has ended, all streams are back and none was lost for a minute. Resumed are messages of the time without a stream that came afterwards."}
	}
	return out
}

// lines are where actions began.
func (s *subject) lines() (out []Line) {
	for i := range s.v.Actions {
		if a := &s.v.Actions[i]; a.Began() {
			out = append(out, Line{Name: a.Name, At: a.StartedUnix})
		}
	}
	return out
}
