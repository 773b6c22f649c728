package report

import (
	"fmt"
	"slices"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var (
	marks = map[verdict.State]string{
		verdict.Met: "✓", verdict.Broken: "✗", verdict.Undecided: "?", verdict.Warned: "!", verdict.NotJudged: "–",
	}
	tones = map[verdict.State]Tone{verdict.Met: Good, verdict.Broken: Bad, verdict.Undecided: Doubt, verdict.Warned: Doubt}
)

func checks(v *verdict.Verdict) Section {
	out := Section{ID: "checks", Title: "Checks"}
	if len(v.Checks) > 0 {
		out.Tables = []Table{checksTable(v.Checks)}
	}
	if len(v.ScriptChecks) > 0 {
		script := Table{Caption: "Checks of the script", Columns: Columns("check", "#passes", "#fails")}
		for _, c := range v.ScriptChecks {
			script.Rows = append(script.Rows, Row{{Text: c.Name}, {Text: format.Thousands(c.Passes)}, {Text: format.Thousands(c.Fails), Tone: faultTone(clamp.Uint64(c.Fails))}})
		}
		out.Tables = append(out.Tables, script)
	}
	if len(v.Reasons) > maxFindings {
		reasons := Table{Caption: "Reasons", Columns: Columns("reason")}
		for _, r := range v.Reasons {
			reasons.Rows = append(reasons.Rows, Cells(r))
		}
		out.Tables = append(out.Tables, reasons)
	}
	for _, w := range v.Warnings {
		out.Notes = append(out.Notes, "Warning: "+w)
	}
	return out
}

func checksTable(list []verdict.Check) Table {
	t := Table{Columns: Columns("check", "limit", "actual", "-impact")}
	for i := range list {
		c := &list[i]
		tone := tones[c.State()]
		actual := Cell{Text: c.Actual}
		if !c.Pass {
			actual.Tone = tone
		}
		t.Rows = append(t.Rows, Row{{Text: c.Name, Tone: tone, Mark: marks[c.State()]}, {Text: c.Limit}, actual, {Text: c.Why}})
	}
	return t
}

// unmetChecks returns the checks that were judged and not met, and counts the met ones in a sentence.
func unmetChecks(v *verdict.Verdict) Section {
	unmet := slices.DeleteFunc(slices.Clone(v.Checks), func(c verdict.Check) bool {
		return c.State() == verdict.Met || c.State() == verdict.NotJudged
	})
	out := Section{ID: "checks"}
	if len(unmet) > 0 {
		out.Tables = []Table{checksTable(unmet)}
	}
	count := map[verdict.State]int{}
	for i := range v.Checks {
		count[v.Checks[i].State()]++
	}
	note, met := "", count[verdict.Met]
	switch {
	case len(unmet) == 0:
		note = format.Count(met, "check") + " passed"
	case met > 0:
		note = format.Plural(met, "more check", "more checks") + " passed"
	default:
		return out
	}
	if n := count[verdict.NotJudged]; n > 0 {
		note += fmt.Sprintf(", %d %s not judged", n, format.Form(n, "was", "were"))
	}
	out.Notes = []string{note}
	return out
}
