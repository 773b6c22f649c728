package html

import (
	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
)

// tones are the colours of the marks of checks.
var tones = map[string]Tone{"✓": Good, "✗": Bad, "?": Doubt, "!": Doubt}

func (s *subject) checks() Section {
	t := Table{Columns: columns("check", "limit", "actual", "what it means")}
	for _, c := range s.v.Checks {
		mark := report.Mark(c)
		actual := Cell{Text: c.Actual, Tone: tones[mark]}
		if c.Pass {
			actual.Tone = ""
		}
		t.Rows = append(t.Rows, Row{{Text: c.Name, Tone: tones[mark], Mark: mark}, {Text: c.Limit}, actual, {Text: c.Why}})
	}
	out := Section{ID: "checks", Title: "Checks", Tables: []Table{t}}
	if len(s.v.ScriptChecks) > 0 {
		checks := Table{Caption: "Checks of the script", Columns: columns("script check", "#passes", "#fails")}
		for _, c := range s.v.ScriptChecks {
			checks.Rows = append(checks.Rows, Row{{Text: c.Name}, {Text: format.Thousands(c.Passes)}, {Text: format.Thousands(c.Fails), Tone: zero(clamp.Uint64(c.Fails))}})
		}
		out.Tables = append(out.Tables, checks)
	}
	if all := s.v.AllReasons(); all != nil {
		reasons := Table{Caption: "All reasons", Columns: columns("what")}
		for _, r := range all {
			reasons.Rows = append(reasons.Rows, cells(r))
		}
		out.Tables = append(out.Tables, reasons)
	}
	for _, w := range s.v.Warnings {
		out.Notes = append(out.Notes, "Warning: "+w)
	}
	return out
}
