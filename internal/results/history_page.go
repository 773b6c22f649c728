package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// HistoryFile is the page of all runs, in their folder.
const HistoryFile = "index.html"

// generator marks the pages of soak, so that soak does not replace an index.html of another program.
const generator = "soak history"

// WriteHistory writes the page of all runs into their folder. If runs end at the same time, each of them writes the
// page again until it is complete.
func WriteHistory(folder string) error {
	const attempts = 5 // a limit, because other runs may end continuously
	for range attempts {
		h, err := ReadHistory(folder)
		if err != nil {
			return err
		}
		if err := h.Write(); err != nil || !h.isStale() {
			return err
		}
	}
	return nil
}

// isStale reports whether another run got its verdict or its page after the folder was read.
func (h *History) isStale() bool {
	hasVerdict := map[string]bool{}
	for _, r := range h.Runs {
		hasVerdict[r.Name] = r.State != Unfinished
	}
	if slices.ContainsFunc(h.Runs, func(r *Entry) bool { return !r.Page && Dir(r.Dir).exists(PageFile) }) {
		return true
	}
	entries, _ := os.ReadDir(h.Folder)
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && !isHidden(e) && !hasVerdict[e.Name()] && Dir(filepath.Join(h.Folder, e.Name())).exists(VerdictFile)
	})
}

// Write writes the page. It returns an error if the folder has an index.html from another program.
func (h *History) Write() error {
	path := filepath.Join(h.Folder, HistoryFile)
	replaceable, err := isReplaceable(path)
	if err != nil {
		return err
	}
	if !replaceable {
		return fmt.Errorf("%s was not written by `%s`; move it away", path, generator)
	}
	return safefile.Write(path, func(w io.Writer) error { return html.Write(format.NewEscaper(w), h.page()) })
}

// HasHistory reports whether the folder has a page of all runs.
func HasHistory(folder string) bool {
	path := filepath.Join(folder, HistoryFile)
	_, err := os.Stat(path)
	replaceable, _ := isReplaceable(path)
	return err == nil && replaceable
}

// isReplaceable reports whether a file is a page that soak wrote, or does not exist.
func isReplaceable(path string) (bool, error) {
	f, err := safefile.Open(path, safefile.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return bytes.Contains(head[:n], []byte(`<meta name="generator" content="`+generator+`">`)), err
}

func (h *History) page() *report.Page {
	p := &report.Page{Title: "Runs in " + h.name(), Generator: generator, Banner: h.banner()}
	for _, s := range []report.Section{h.runs(), h.plans(), h.otherFolders()} {
		if len(s.Tables)+len(s.Lead) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	return p
}

func (h *History) name() string { return Dir(h.Folder).name() }

func (h *History) count() map[string]int {
	out := map[string]int{}
	for _, r := range h.Runs {
		out[r.outcome()]++
	}
	return out
}

// outcomeTiles lists the outcomes of runs in the order of their tiles.
var outcomeTiles = []struct {
	outcome, name, mark string
	tone                report.Tone
}{
	{string(verdict.Pass), "passed", "✓", report.Good},
	{string(verdict.Pass) + " (connections only)", "passed (connections only)", "–", report.Doubt},
	{string(verdict.Fail), "failed", "✗", report.Bad},
	{string(verdict.Invalid), "invalid", "?", report.Doubt},
	{string(Unfinished), "unfinished", "…", report.Doubt},
	{string(Damaged), "damaged", "!", report.Doubt},
}

func (r *Entry) mark() (mark string, tone report.Tone) {
	for _, group := range outcomeTiles {
		if group.outcome == r.outcome() {
			return group.mark, group.tone
		}
	}
	return "", report.Doubt
}

func (h *History) banner() report.Banner {
	b := report.Banner{Word: format.Count(len(h.Runs), "run"), Name: "Runs in " + h.name(), Tone: report.Doubt}
	if len(h.Runs) == 0 {
		b.Sentence = "No runs yet; start one with soak run."
		return b
	}
	last := h.Runs[0]
	_, b.Tone = last.mark()
	b.Sentence = fmt.Sprintf("Last run %s: %s", last.Name, last.outcome())
	if worse := last.regressions(); len(worse) > 0 {
		b.Sentence += ", worse than earlier runs: " + strings.Join(worse, "; ")
	}
	n := h.count()
	for _, group := range outcomeTiles {
		if n[group.outcome] > 0 {
			b.Tiles = append(b.Tiles, report.Tile{Name: group.name, Value: format.Thousands(n[group.outcome]), Tone: group.tone})
		}
	}
	return b
}

func (h *History) runs() report.Section {
	t := report.Table{Columns: report.Columns("run", "verdict", "plan", "figures", "against earlier runs", "changed since the previous run")}
	for _, r := range h.Runs {
		mark, tone := r.mark()
		name := report.Cell{Text: r.Name, Mark: mark, Tone: tone, Note: format.Time(r.Started)}
		if r.Page {
			name.Link = "./" + url.PathEscape(r.Name) + "/" + PageFile
		}
		row := report.Row{name, {Text: r.outcome(), Tone: tone}}
		if r.Verdict == nil {
			t.Rows = append(t.Rows, append(row, report.Cell{Text: "–"}, report.Cell{Text: r.Reason}, report.Cell{Text: "–"}, report.Cell{Text: "–"}))
			continue
		}
		plan := report.Cell{Text: r.Plan.Title}
		if id := h.id(r.Plan); id != "" {
			plan.Link = "#" + id
		}
		figures := report.Cell{Text: strings.Join(r.figures(), ", ")}
		if problem := r.problem(); problem != "" {
			figures = report.Cell{Text: problem, Tone: tone, Note: figures.Text}
			if figures.Tone == report.Good { // a suite that searches for a breaking point may pass with faults
				figures.Tone = report.Doubt
			}
		}
		text, statusTone := r.status()
		t.Rows = append(t.Rows, append(row, plan, figures, report.Cell{Text: text, Tone: statusTone}, report.Cell{Text: r.changesSincePrevious()}))
	}
	out := report.Section{ID: "runs", Title: "Runs, the newest first", Short: "Runs"}
	if len(t.Rows) > 0 {
		out.Tables = []report.Table{t}
		out.Notes = []string{fmt.Sprintf("Each run is compared with the last %d earlier runs of its plan that passed without a regression. A regression, as in soak compare, is a metric that is worse by over %.0f %% and by more than chance explains, or a fault that none of these runs had.",
			compare.MaxEarlier, 100*compare.Tolerance)}
	}
	return out
}

// id returns the id of the table with the metrics of a plan, to which the page links. It returns "" for a plan with one
// run.
func (h *History) id(p *PlanRuns) string {
	if len(p.Runs) < 2 {
		return ""
	}
	return fmt.Sprintf("plan-%d", slices.Index(h.Plans, p)+1)
}

// maxPoints is the maximum number of runs that a line shows, because more points cannot be distinguished.
const maxPoints = 60

func (h *History) plans() report.Section {
	out := report.Section{ID: "plans", Title: "Plans, and their metrics over the runs", Short: "Plans"}
	for _, p := range h.Plans {
		if id := h.id(p); id != "" {
			out.Tables = append(out.Tables, p.table(id))
		}
	}
	if len(out.Tables) > 0 {
		out.Notes = []string{fmt.Sprintf("Each line shows the runs of a plan, from the oldest to the newest, at most the last %d. Its scale begins at 0. Red is a regression; a gap is an invalid run, or one without the metric.", maxPoints)}
	}
	return out
}

func (p *PlanRuns) table(id string) report.Table {
	t := report.Table{ID: id, Caption: p.Title, Note: p.summary(), Columns: report.Columns("metric", "over the runs", "#newest", "#median", "#lowest", "#highest")}
	for _, l := range p.lines() {
		label := fmt.Sprintf("%s over %s, from %s to %s", l.Name, format.Count(len(l.values), "run"), number(l.Metric, l.Min), number(l.Metric, l.Max))
		t.Rows = append(t.Rows, report.Row{
			{Text: l.Name}, {Spark: &report.Spark{Label: label, Values: l.values, Tones: l.tones}}, {Text: number(l.Metric, l.values[len(l.values)-1])},
			{Text: number(l.Metric, l.Median)}, {Text: number(l.Metric, l.Min)}, {Text: number(l.Metric, l.Max)},
		})
	}
	return t
}

// A line is a metric over the last maxPoints runs of a plan.
type line struct {
	verdict.Metric
	compare.Summary
	values []float64           // NaN if unknown, or for an invalid run
	tones  map[int]report.Tone // of regressions, by the index of the value
}

// lines returns the metrics of a plan that are above 0 in at least one of its last maxPoints runs. It ignores invalid
// runs, and omits failedVerdict.
func (p *PlanRuns) lines() (out []line) {
	runs := p.Runs[max(len(p.Runs)-maxPoints, 0):]
	names := map[string]bool{}
	for _, newest := range slices.Backward(runs) {
		for _, m := range suite.Metrics(newest.Verdict) {
			if names[m.Name] || m.Name == failedVerdict {
				continue
			}
			names[m.Name] = true
			l := line{Metric: m, tones: map[int]report.Tone{}}
			var values []float64
			for i, r := range runs {
				v, ok := r.metrics[m.Name]
				if !ok || r.Verdict.Verdict == verdict.Invalid {
					l.values = append(l.values, math.NaN())
					continue
				}
				l.values, values = append(l.values, v), append(values, v)
				if r.Comparison != nil && slices.ContainsFunc(r.Comparison.Regressions(), func(c compare.Change) bool { return c.Name == m.Name }) {
					l.tones[i] = report.Bad
				}
			}
			if len(values) == 0 {
				continue
			}
			if l.Summary = compare.Summarize(values); l.Max > 0 { // otherwise the metric is unmeasured, or a fault that no run has
				out = append(out, l)
			}
		}
	}
	return out
}

func (p *PlanRuns) summary() string {
	n := map[verdict.Outcome]int{}
	for _, r := range p.Runs {
		n[r.Verdict.Verdict]++
	}
	text := fmt.Sprintf("%s since %s: %d passed", format.Count(len(p.Runs), "run"), format.Time(p.Runs[0].Started), n[verdict.Pass])
	if n[verdict.Fail] > 0 {
		text += fmt.Sprintf(", %d failed", n[verdict.Fail])
	}
	if n[verdict.Invalid] > 0 {
		text += fmt.Sprintf(", %d invalid", n[verdict.Invalid])
	}
	return text
}

func (h *History) otherFolders() report.Section {
	out := report.Section{ID: "others", Title: "Other folders", Short: "Others"}
	if len(h.Unrelated) > 0 {
		out.Lead = []string{"Folders with neither a verdict nor a plan: " + strings.Join(h.Unrelated, ", ") + "."}
	}
	return out
}
