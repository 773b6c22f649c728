package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	textWidth      = 80 // maximum length of a line in characters
	nameWidth      = 12 // minimum width of the names of facts
	minColumnWidth = 14 // minimum width of a text column that was narrowed
	maxCellWidth   = 38 // maximum width of a column in a table that is divided into several tables
)

// Text writes a page in at most 80 columns, except for longer words.
func Text(w io.Writer, p *Page) error {
	out := NewText(w, false)
	out.page(p)
	return out.Flush()
}

func (t *TextWriter) page(p *Page) {
	t.banner(&p.Banner)
	for i := range p.Sections {
		t.section(&p.Sections[i])
	}
}

// A TextWriter writes parts of a page as text. It keeps its first error for Flush.
type TextWriter struct {
	*bufio.Writer
	color bool
}

// NewText returns a TextWriter. If color is set, the writer shows tones with ANSI escape sequences.
func NewText(w io.Writer, color bool) *TextWriter { return &TextWriter{bufio.NewWriter(w), color} }

var colors = map[Tone]string{Good: "\x1b[32m", Bad: "\x1b[31m", Doubt: "\x1b[33m"}

func (t *TextWriter) withColor(tone Tone, text string) string {
	if color := colors[tone]; t.color && color != "" {
		return color + text + "\x1b[0m"
	}
	return text
}

func (t *TextWriter) line(text string) { fmt.Fprintln(t, strings.TrimRight(text, " ")) }

func (t *TextWriter) verdict(b *Banner, width int) {
	lines := fold(b.Word+": "+b.Sentence, width, false)
	word := replaceControls(b.Word)
	for i, line := range lines {
		if remainder, ok := strings.CutPrefix(line, word); ok && i == 0 {
			line = t.withColor(b.Tone, word) + remainder
		}
		t.line(line)
	}
}

func (t *TextWriter) banner(b *Banner) {
	t.verdict(b, textWidth)
	t.Wrap("", strings.Join(append([]string{b.Name}, b.About...), " · "))
	t.list(b.Findings)
}

func (t *TextWriter) list(sentences []string) {
	for _, s := range sentences {
		t.Wrap("  - ", s)
	}
}

// section writes a section without its charts and downloads. It omits a section that has nothing else.
func (t *TextWriter) section(s *Section) {
	if len(s.Lead)+len(s.Tables)+len(s.Notes) == 0 {
		return
	}
	t.line("")
	if s.Title != "" {
		t.Wrap("", s.Title)
	}
	t.list(s.Lead)
	for i := range s.Tables {
		if i > 0 {
			t.line("")
		}
		t.Table(&s.Tables[i])
	}
	if len(s.Notes) > 0 && len(s.Tables) > 0 {
		t.line("")
	}
	for _, note := range s.Notes {
		t.Wrap("  ", note)
	}
}

// Wrap writes text in lines after a prefix. Further lines are aligned with the text of the first one.
func (t *TextWriter) Wrap(prefix, text string) {
	for _, line := range fold(text, textWidth-utf8.RuneCountInString(prefix), false) {
		t.line(prefix + line)
		prefix = strings.Repeat(" ", utf8.RuneCountInString(prefix))
	}
}

// Table writes a table. A table without columns has a name and a value in each line.
func (t *TextWriter) Table(table *Table) {
	if table.Caption != "" {
		t.Wrap("", table.Caption)
	}
	if table.Note != "" {
		t.Wrap("  ", table.Note)
	}
	if len(table.Columns) == 0 {
		t.facts(table)
		return
	}
	widths := table.widths()
	for i, columns := range table.blocks(widths) {
		if i > 0 {
			t.line("")
		}
		t.columns(table, columns, widths)
	}
}

func (t *TextWriter) facts(table *Table) {
	width := nameWidth
	for _, row := range table.Rows {
		width = max(width, min(utf8.RuneCountInString(replaceControls(row[0].Text)), 20))
	}
	for _, row := range table.Rows {
		name := fmt.Sprintf("%-*s ", width, replaceControls(row[0].Text))
		line := name + replaceControls(row[1].Text)
		if utf8.RuneCountInString(line) > textWidth {
			t.Wrap(name, row[1].Text)
			continue
		}
		t.line(line)
	}
}

func (c *Cell) withMark() string {
	text := replaceControls(c.Text)
	if c.Mark != "" {
		text = plainMarks[c.Mark] + "  " + text
	}
	if c.Note != "" {
		text += " " + replaceControls(c.Note)
	}
	if c.Spark != nil {
		text += " " + c.Spark.String()
	}
	return text
}

var plainMarks = map[string]string{"✓": "ok", "✗": "XX", "?": "??", "!": "!!", "–": "--"}

// markIndent is as wide as a mark and the two spaces after it.
const markIndent = "    "

func (table *Table) hasMarks() bool {
	return slices.ContainsFunc(table.Rows, func(r Row) bool { return r[0].Mark != "" })
}

// widths returns the width of each column. It narrows text columns if the table then fits. Otherwise several tables are
// needed, and widths limits each column to maxCellWidth.
func (table *Table) widths() []int {
	widths := make([]int, len(table.Columns))
	sum := 0
	for i, c := range table.Columns {
		if c.Detail {
			continue
		}
		widths[i] = utf8.RuneCountInString(replaceControls(c.Name))
		if i == 0 && table.hasMarks() {
			widths[i] += len(markIndent)
		}
		for _, row := range table.Rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i].withMark()))
			}
		}
		sum += widths[i] + 2
	}
	limitedWidths := slices.Clone(widths)
	for i := range limitedWidths {
		limitedWidths[i] = min(limitedWidths[i], maxCellWidth)
	}
	for ; sum > textWidth+2; sum-- {
		widest := 0
		for i, c := range table.Columns {
			if !c.Number && widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumnWidth { // several tables are needed
			return limitedWidths
		}
		widths[widest]--
	}
	return widths
}

// blocks divides the columns into as many tables as the line width requires. Each of these tables has the first column.
func (table *Table) blocks(widths []int) [][]int {
	blocks := [][]int{{0}}
	remaining := textWidth - widths[0]
	for i, c := range table.Columns {
		if i == 0 || c.Detail {
			continue
		}
		last := len(blocks) - 1
		if remaining -= widths[i] + 2; remaining < 0 && len(blocks[last]) > 1 {
			blocks, last = append(blocks, []int{0}), last+1
			remaining = textWidth - widths[0] - widths[i] - 2
		}
		blocks[last] = append(blocks[last], i)
	}
	return blocks
}

func (t *TextWriter) columns(table *Table, columns, widths []int) {
	head := make(Row, len(table.Columns))
	for i, c := range table.Columns {
		head[i].Text = c.Name
	}
	if table.hasMarks() {
		head[0].Text = markIndent + head[0].Text
	}
	for _, row := range append([]Row{head}, table.Rows...) {
		t.row(table, columns, widths, row)
	}
}

// row writes a row of a table. A cell that is wider than its column continues on the next lines.
func (t *TextWriter) row(table *Table, columns, widths []int, row Row) {
	cells := make([][]string, len(table.Columns))
	height := 1
	for _, i := range columns {
		if i >= len(row) {
			continue
		}
		text := row[i].withMark()
		indent := len(text) - len(strings.TrimLeft(text, " "))
		if row[i].Mark != "" {
			indent = len("ok  ")
		}
		prefix := text[:indent]
		for _, line := range fold(text[indent:], max(widths[i]-indent, 1), true) {
			cells[i] = append(cells[i], prefix+line)
			prefix = strings.Repeat(" ", indent)
		}
		height = max(height, len(cells[i]))
	}
	for n := range height {
		line := ""
		for _, i := range columns {
			line += t.cell(table, widths, row, cells[i], i, n) + "  "
		}
		t.line(line)
	}
}

// cell returns the nth line of the ith cell of a row, as wide as its column.
func (t *TextWriter) cell(table *Table, widths []int, row Row, lines []string, i, n int) string {
	width, line := widths[i], ""
	if n < len(lines) {
		line = lines[n]
	}
	if !table.Columns[i].Number {
		width = -width
	}
	line = fmt.Sprintf("%*s", width, line)
	if n == 0 && i < len(row) && row[i].Mark != "" {
		const mark = len("ok")
		line = t.withColor(row[i].Tone, line[:mark]) + line[mark:]
	}
	return line
}

// fold breaks text between words into lines of the given width. A word that is longer than a line gets its own line,
// or is broken if breakWords is set.
func fold(s string, width int, breakWords bool) (lines []string) {
	line := []rune{}
	for _, word := range strings.Fields(replaceControls(s)) {
		w := []rune(word)
		if len(line) > 0 && len(line)+1+len(w) <= width {
			line = append(append(line, ' '), w...)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, string(line))
		}
		for breakWords && len(w) > width {
			lines = append(lines, string(w[:width]))
			w = w[width:]
		}
		line = w
	}
	return append(lines, string(line))
}

// replaceControls replaces control and format characters with spaces, because a terminal would interpret them.
func replaceControls(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
}
