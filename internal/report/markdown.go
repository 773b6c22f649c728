package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

var resultSymbols = map[Tone]string{Good: "✅", Bad: "❌", Doubt: "⚠️"}

// Markdown writes a page for a pull request. All text is escaped.
func Markdown(w io.Writer, p *Page) error {
	var out bytes.Buffer
	b := &p.Banner
	fmt.Fprintf(&out, "# %s %s: %s\n\n%s\n\n", resultSymbols[b.Tone], escape(b.Word), escape(b.Sentence), escape(strings.Join(append([]string{b.Name}, b.About...), " · ")))
	for _, f := range b.Findings {
		fmt.Fprintf(&out, "- %s\n", escape(f))
	}
	for i := range p.Sections {
		markdownSection(&out, &p.Sections[i])
	}
	_, err := w.Write(out.Bytes())
	return err
}

// markdownSection writes a section, unless it has only charts or downloads.
func markdownSection(out *bytes.Buffer, s *Section) {
	if len(s.Lead)+len(s.Tables)+len(s.Notes) == 0 {
		return
	}
	if s.Title != "" {
		fmt.Fprintf(out, "\n## %s\n", escape(s.Title))
	}
	for _, text := range s.Lead {
		fmt.Fprintf(out, "\n%s\n", escape(text))
	}
	for i := range s.Tables {
		markdownTable(out, &s.Tables[i])
	}
	for _, note := range s.Notes {
		fmt.Fprintf(out, "\n> %s\n", escape(note))
	}
}

func markdownTable(out *bytes.Buffer, t *Table) {
	if t.Caption != "" {
		fmt.Fprintf(out, "\n**%s**\n", escape(t.Caption))
	}
	if t.Note != "" {
		fmt.Fprintf(out, "\n%s\n", escape(t.Note))
	}
	columns := t.Columns
	if len(columns) == 0 {
		columns = make([]Column, 2)
	}
	head, rule := "|", "|"
	for _, c := range columns {
		head += " " + escape(c.Name) + " |"
		if c.Number {
			rule += " --: |"
		} else {
			rule += " --- |"
		}
	}
	fmt.Fprintf(out, "\n%s\n%s\n", head, rule)
	for _, row := range t.Rows {
		line := "|"
		for i := range row {
			text := escape(strings.TrimSpace(row[i].Mark + " " + row[i].Text + " " + row[i].Note))
			if i == 0 && len(t.Columns) == 0 && text != "" {
				text = "**" + text + "**"
			}
			line += " " + text + " |"
		}
		fmt.Fprintln(out, line)
	}
}

// escape escapes text for Markdown. It also prevents GitHub from linking addresses, people and issues.
func escape(text string) string { return escaper.Replace(text) }

var escaper = strings.NewReplacer(
	"://", "&#58;//", "www.", "www&#46;", "@", "&#64;", "#", "&#35;",
	"~", "\\~", "&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "\n", " ", "\r", " ",
	"*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "\\", "\\\\",
)
