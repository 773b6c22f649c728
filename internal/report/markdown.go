package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

//go:embed report.md.tmpl
var markdown string

var page = template.Must(template.New("report.md").Funcs(template.FuncMap{
	"bytes": format.Bytes[uint64], "escape": escaper.Replace, "facts": facts, "mark": Mark, "ran": Ran,
	"list": func(all ...string) []string { return all },
	"seal": func(v *verdict.Verdict) string {
		if v.ConnectionsOnly() {
			return seal[verdict.Invalid]
		}
		return seal[v.Verdict]
	},
	"numeric": func(t verdict.Table) (out []bool) {
		for i := range t.Columns {
			out = append(out, t.Numeric(i))
		}
		return out
	},
	"tables": func(v *verdict.Verdict) []verdict.Table {
		var all []verdict.Table
		for i := range v.Actions {
			all = append(all, actionTable(&v.Actions[i]))
		}
		all = append(all, tables(v)...)
		if t, ok := Machines(v, mostMachines); ok {
			all = append(all, t)
		}
		if v.Layout.Declared {
			all = append(all, runnerTable(v))
		}
		return all
	},
	"thousands": format.Thousands[uint64], "times": format.Thousands[int64],
}).Parse(markdown))

// Markdown writes a page for a pull request. Whatever comes from outside is escaped.
func Markdown(w io.Writer, v *verdict.Verdict) error { return page.Execute(w, v) }

// runnerTable says who made the load.
func runnerTable(v *verdict.Verdict) verdict.Table {
	t := verdict.Table{Title: "Runners", Columns: []string{"runner", "host", "segment", "state", "RSS at most", "CPU"}}
	for _, r := range v.Runners {
		t.Rows = append(t.Rows, []string{fmt.Sprint(r.Index), r.Host, r.Segment, r.State, format.Bytes(r.RSSMax), fmt.Sprintf("%.1f s", r.CPUSeconds)})
	}
	return t
}

// seal is what a reader of a pull request sees from afar.
var seal = map[verdict.Outcome]string{verdict.Pass: "✅", verdict.Fail: "❌", verdict.Invalid: "⚠️"}

// escaper also keeps GitHub from making links of addresses, people and issues.
var escaper = strings.NewReplacer(
	"://", "&#58;//", "www.", "www&#46;", "@", "&#64;", "#", "&#35;",
	"~", "\\~", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "\n", " ", "\r", " ",
	"*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "\\", "\\\\",
)
