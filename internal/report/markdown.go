package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Markdown writes a page for a pull request. Whatever comes from outside is escaped.
func Markdown(w io.Writer, v *verdict.Verdict) error {
	out := &printer{w: w}
	out.printf("# %s %s %s: %s\n\n", seal[v.Verdict], title(v), escape(v.TestID), v.Verdict)
	for _, r := range v.Reasons {
		out.printf("- %s\n", escape(r))
	}
	out.printf("\n| | figures |\n|---|---")
	for _, row := range facts(v) {
		if row[0] == "" { // goes on with the line before
			out.printf(" %s", escape(row[1]))
			continue
		}
		out.printf(" |\n| **%s** | %s", row[0], escape(row[1]))
	}
	out.printf(" |\n\n| | criterion | limit | actual | why |\n|---|---|---|---|---|\n")
	for _, c := range v.Criteria {
		sign := map[string]string{"ok": "✓", "XX": "✗", "??": "?", "!!": "!"}[mark(c)]
		out.printf("| %s | %s | %s | %s | %s |\n", sign, escape(c.Name), escape(c.Limit), escape(c.Actual), escape(c.Why))
	}
	for _, table := range v.Tables {
		markdownTable(out, table)
	}
	if v.Suite != nil {
		markdownTable(out, runnerTable(v))
		warnings(out, v)
		return out.err
	}
	out.printf("\n| runner | host | segment | state | connections | received | missed | RSS at most | CPU |\n|---|---|---|---|--:|--:|--:|--:|--:|\n")
	for _, r := range v.Runners {
		out.printf("| %d | %s | %s | %s | %d | %s | %d | %s | %.1f s |\n", r.Index, escape(r.Host), escape(r.Segment), escape(r.State),
			r.Connections, thousands(r.Received), r.Missed, bytes(r.RSSMax), r.CPUSeconds)
	}
	if len(v.Checks) > 0 {
		out.printf("\n| check | passes | fails |\n|---|--:|--:|\n")
		for _, c := range v.Checks {
			out.printf("| %s | %s | %s |\n", escape(c.Name), thousands(uint64(c.Passes)), thousands(uint64(c.Fails)))
		}
	}
	warnings(out, v)
	return out.err
}

func warnings(out *printer, v *verdict.Verdict) {
	for _, warning := range v.Warnings {
		out.printf("\n> warning: %s\n", escape(warning))
	}
}

// seal is what a reader of a pull request sees from afar.
var seal = map[verdict.Outcome]string{verdict.Pass: "✅", verdict.Fail: "❌", verdict.Invalid: "⚠️"}

// escaper also keeps GitHub from making links of addresses, people and issues.
var escaper = strings.NewReplacer(
	"://", "&#58;//", "www.", "www&#46;", "@", "&#64;", "#", "&#35;",
	"~", "\\~", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "\n", " ", "\r", " ",
	"*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "\\", "\\\\",
)

func escape(s string) string { return escaper.Replace(fmt.Sprint(s)) }
