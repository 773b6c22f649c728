package ci

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// maxAnnotations is the number of annotations of each kind that GitHub shows per step.
const maxAnnotations = 10

// annotations returns the workflow commands: an error for each unmet check, with its findings, or a notice of the pass;
// then the warnings. If the run passed without checking messages, a warning replaces the notice.
func annotations(v *verdict.Verdict) (out []string) {
	outcome := title(v) + " " + v.Word()
	var errs, warnings []string
	for _, c := range unmetChecks(v) {
		errs = append(errs, command("error", outcome+": "+c.Name, strings.Join(c.Sentences(), "\n")))
	}
	for _, w := range v.Warnings {
		warnings = append(warnings, command("warning", title(v), w))
	}
	if len(errs) == 0 {
		reasons := strings.Join(v.Reasons, "\n")
		if v.ConnectionsOnly() {
			warnings = slices.Insert(warnings, 0, command("warning", outcome, reasons))
		} else {
			out = append(out, command("notice", outcome, reasons))
		}
	}
	out = append(out, limitAnnotations(errs, "error", outcome)...)
	return append(out, limitAnnotations(warnings, "warning", title(v))...)
}

// limitAnnotations shortens a list to at most maxAnnotations entries. If it omits some, the last entry states how many.
func limitAnnotations(list []string, kind, title string) []string {
	if len(list) <= maxAnnotations {
		return list
	}
	last := command(kind, title, fmt.Sprintf("and %d more, which are in the summary of the step", len(list)-maxAnnotations+1))
	return append(list[:maxAnnotations-1:maxAnnotations-1], last)
}

// These replacers escape the message and the properties of a workflow command. A colon or a comma ends a property.
var (
	escapeMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// command returns a workflow command. It escapes title and message, so that they cannot contain another command.
func command(kind, title, message string) string {
	return fmt.Sprintf("::%s title=%s::%s", kind, escapeProperty.Replace(title), escapeMessage.Replace(message))
}

// maxSummary is the size in bytes above which a summary is shortened. GitHub accepts 1 MiB from each step, and a step
// may run soak several times.
const maxSummary = 200 << 10

// summary returns the text of report.md. It shortens text longer than maxSummary, and names the file with the rest.
func summary(v *verdict.Verdict) string {
	var b strings.Builder
	_ = report.Markdown(&b, report.Brief(v)) // writing to memory does not fail
	text := b.String()
	if len(text) > maxSummary {
		text = text[:strings.LastIndexByte(text[:maxSummary], '\n')+1] + "\n> The rest is in report.md, in the folder of the run.\n"
	}
	return text + "\n"
}

// noVerdict returns the summary of a run without a verdict: the reasons as a code block, so that GitHub does not
// interpret them as Markdown.
func noVerdict(v *verdict.Verdict) string {
	return "# ⚠️ soak: no verdict\n\n    " + escapeCommands(strings.Join(v.Reasons, "\n")) + "\n\n"
}

func outputs(v *verdict.Verdict, report string) string {
	return fmt.Sprintf("verdict=%s\ntestid=%s\nreport=%s\n", v.Verdict, escapeCommands(v.TestID), escapeCommands(report))
}
