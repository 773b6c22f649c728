package html

import (
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func (s *subject) criteria() Section {
	t := Table{Columns: columns("criterion", "limit", "actual", "what it means")}
	for _, c := range s.v.Criteria {
		name := Cell{Text: c.Name, Tone: Good, Mark: "✓"}
		switch {
		case c.Pass:
		case c.Advisory:
			name.Tone, name.Mark = Doubt, "!"
		case c.Invalid:
			name.Tone, name.Mark = Doubt, "?"
		default:
			name.Tone, name.Mark = Bad, "✗"
		}
		t.Rows = append(t.Rows, Row{name, {Text: c.Limit}, {Text: c.Actual, Tone: actualTone(c)}, {Text: c.Why}})
	}
	out := Section{ID: "criteria", Title: "Criteria", Tables: []Table{t}}
	if len(s.v.Checks) > 0 {
		checks := Table{Caption: "Checks of the script", Columns: columns("check", "#passes", "#fails")}
		for _, c := range s.v.Checks {
			checks.Rows = append(checks.Rows, Row{{Text: c.Name}, {Text: count(uint64(c.Passes))}, {Text: count(uint64(c.Fails)), Tone: zero(uint64(c.Fails))}})
		}
		out.Tables = append(out.Tables, checks)
	}
	for _, w := range s.v.Warnings {
		out.Notes = append(out.Notes, "Warning: "+w)
	}
	return out
}

func actualTone(c verdict.Criterion) Tone {
	switch {
	case c.Pass:
		return ""
	case c.Advisory || c.Invalid:
		return Doubt
	}
	return Bad
}
