package ci

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// maxAnnotations is the number of annotations of each kind that GitHub shows per step.
const maxAnnotations = 10

// annotations returns the workflow commands: an error for each check that decided the verdict, with its findings, or a
// notice of the pass; then the warnings.
func annotations(v *verdict.Verdict) (out []string) {
	word := name(v) + " " + v.Word()
	var errs, warnings []string
	for _, c := range decidingChecks(v) {
		errs = append(errs, command("error", word+": "+c.Name, strings.Join(c.Sentences(), "\n")))
	}
	for _, w := range v.Warnings {
		warnings = append(warnings, command("warning", name(v), w))
	}
	if len(errs) == 0 {
		kind := "notice"
		if v.ConnectionsOnly() {
			kind = "warning"
		}
		out = append(out, command(kind, word, strings.Join(v.Reasons, "\n")))
	}
	out = append(out, limitAnnotations(errs, "error", word)...)
	return append(out, limitAnnotations(warnings, "warning", name(v))...)
}

// limitAnnotations returns at most maxAnnotations of a list; the last one then has the number of the others.
func limitAnnotations(list []string, kind, title string) []string {
	if len(list) <= maxAnnotations {
		return list
	}
	last := command(kind, title, fmt.Sprintf("and %d more, which are in the summary of the step", len(list)-maxAnnotations+1))
	return append(list[:maxAnnotations-1:maxAnnotations-1], last)
}

// GitHub's escapes of a message, and of a property, which also ends at a colon or a comma.
var (
	escapeMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// command returns a workflow command. Title and message are escaped, so neither can end it or start another one.
func command(kind, title, message string) string {
	return fmt.Sprintf("::%s title=%s::%s", kind, escapeProperty.Replace(title), escapeMessage.Replace(message))
}

// maxSummary limits a summary in bytes: GitHub accepts 1 MiB from all steps of a job.
const maxSummary = 200 << 10

// summary returns report.md, up to the limit of GitHub.
func summary(v *verdict.Verdict) string {
	var b strings.Builder
	_ = report.Markdown(&b, report.Brief(v)) // writing to memory does not fail
	text := b.String()
	if len(text) > maxSummary {
		text = text[:strings.LastIndexByte(text[:maxSummary], '\n')+1] + "\n> The rest is in report.md, in the folder of the run.\n"
	}
	return text + "\n"
}

// noVerdict returns the summary of a run without a verdict: the reason, as plain text in Markdown.
func noVerdict(v *verdict.Verdict) string {
	return "# ⚠️ soak: no verdict\n\n    " + escapeCommands(strings.Join(v.Reasons, "\n")) + "\n\n"
}

// outputs returns the outputs of the step.
func outputs(v *verdict.Verdict, report string) string {
	return fmt.Sprintf("verdict=%s\ntestid=%s\nreport=%s\n", v.Verdict, escapeCommands(v.TestID), escapeCommands(report))
}
