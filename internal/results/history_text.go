package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Text writes the history for a terminal: at most limit of the newest runs, and their plans.
func (h *History) Text(w io.Writer, limit int) error {
	out := report.NewText(w, false)
	n := h.count()
	counts := []string{format.Count(len(h.Runs), "run")}
	for _, group := range outcomeTiles {
		if n[group.outcome] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n[group.outcome], group.outcome))
		}
	}
	out.Wrap("", h.Folder+": "+strings.Join(counts, ", "))
	newest := h.Runs[:min(limit, len(h.Runs))]
	for _, r := range newest {
		fmt.Fprintln(out)
		facts := r.facts()
		out.Table(&facts)
	}
	if omitted := len(h.Runs) - len(newest); omitted > 0 {
		out.Wrap("\n", fmt.Sprintf("… and %d more; raise --limit to show more runs, or open %s.", omitted, HistoryFile))
	}
	for _, p := range h.Plans {
		if h.id(p) != "" && slices.ContainsFunc(newest, func(r *Entry) bool { return r.Plan == p }) {
			fmt.Fprintln(out)
			table := p.table("")
			out.Table(&table)
		}
	}
	if len(h.Unrelated) > 0 {
		out.Wrap("\nother folders: ", strings.Join(h.Unrelated, ", "))
	}
	return out.Flush()
}

func (r *Entry) facts() report.Table {
	name := strings.ToUpper(r.outcome())
	title := fmt.Sprintf("%s, %s", r.Name, format.Time(r.Started))
	if r.Verdict == nil {
		return report.Facts(name, title, "reason", r.Reason)
	}
	status, _ := r.status()
	return report.Facts(name, title, "plan", r.Plan.Title, "faults", r.problem(), "figures", strings.Join(r.figures(), ", "), "compared", status, "changed", r.changesSincePrevious())
}

// A Pair is two runs, of any plans.
type Pair struct{ Old, New *Entry }

// ReadPair reads the folders of two runs. Both must have a verdict.
func ReadPair(older, newer string) (p Pair, err error) {
	for folder, run := range map[string]**Entry{older: &p.Old, newer: &p.New} {
		r := readEntry(folder)
		switch {
		case r == nil:
			return p, fmt.Errorf("%s is not the folder of a run", folder)
		case r.Verdict == nil:
			return p, fmt.Errorf("%s is %s: %s", folder, r.State, r.Reason)
		}
		*run = r
	}
	return p, nil
}

// Text writes the differences between the two runs.
func (p Pair) Text(w io.Writer) error {
	out := report.NewText(w, false)
	header := report.Table{}
	for i, r := range []*Entry{p.Old, p.New} {
		header.Rows = append(header.Rows, report.Cells([]string{"old", "new"}[i], fmt.Sprintf("%s, %s: %s", r.Name, format.Time(r.Started), r.outcome())),
			report.Cells("", suite.Title(r.Verdict)))
		if problem := r.problem(); problem != "" {
			header.Rows = append(header.Rows, report.Cells("", problem))
		}
	}
	differences := changes(p.Old, p.New)
	if len(differences) == 0 {
		differences = []string{"nothing: neither versions nor machine nor settings"}
	}
	for i, change := range differences {
		header.Rows = append(header.Rows, report.Cells([]string{"changed", ""}[min(i, 1)], change))
	}
	out.Table(&header)
	fmt.Fprintln(out)
	t := report.Table{Columns: report.Columns("metric", "#old", "#new")}
	for _, m := range p.metrics() {
		row := report.Cells(m.Name, "–", "–")
		for i, r := range []*Entry{p.Old, p.New} {
			if v, known := r.metrics[m.Name]; known {
				row[i+1].Text = number(m, v)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	out.Table(&t)
	fmt.Fprintln(out)
	if err := compare.SamePlan(p.Old.Run, p.New.Run); err != nil {
		out.Wrap("", "The runs have different plans, so differences between their metrics may have other causes than the service.")
	} else {
		out.Wrap("", "The runs have the same plan. Differences between two runs may be due to chance; soak compare checks this with three or more runs.")
	}
	return out.Flush() //nolint:wrapcheck // of standard output
}

// metrics returns the metrics of either run, without faults that neither run had.
func (p Pair) metrics() (out []verdict.Metric) {
	for _, r := range []*Entry{p.Old, p.New} {
		for _, m := range suite.Metrics(r.Verdict) {
			known := slices.ContainsFunc(out, func(other verdict.Metric) bool { return other.Name == m.Name })
			absent := m.Fault && p.Old.metrics[m.Name]+p.New.metrics[m.Name] == 0
			if !known && !absent {
				out = append(out, m)
			}
		}
	}
	return out
}

// failedVerdict is the metric that is 1 for a run that failed.
const failedVerdict = "failed verdict"

const maxFigures = 4

// faults returns the non-zero fault counters of a run as text, without failedVerdict.
func (r *Entry) faults() (out []string) {
	for _, m := range suite.Metrics(r.Verdict) {
		if m.Fault && m.Value > 0 && m.Name != failedVerdict {
			out = append(out, figure(m))
		}
	}
	return out
}

// problem returns the faults of a run or, without faults, the first reason why it did not pass. It returns "" if the
// run has neither.
func (r *Entry) problem() string {
	v := r.Verdict
	if faults := r.faults(); len(faults) > 0 {
		return strings.Join(faults, ", ")
	}
	if v.Verdict != verdict.Pass && len(v.Reasons) > 0 {
		return v.Reasons[0]
	}
	return ""
}

// figures returns the message counts and the first metrics that are not faults, at most maxFigures in all.
func (r *Entry) figures() (out []string) {
	v := r.Verdict
	noun := v.Service.Noun()
	if v.Responses != nil {
		noun = "chunk"
	}
	if n := v.Messages; n.Expected > 0 {
		out = append(out, fmt.Sprintf("%s of %s received", format.Thousands(n.Received), format.Count(n.Expected, noun)))
	}
	for _, m := range suite.Metrics(v) {
		if !m.Fault && len(out) < maxFigures {
			out = append(out, figure(m))
		}
	}
	return out
}

func figure(m verdict.Metric) string { return m.Name + " " + number(m, m.Value) }

// number formats a value of a metric. It appends the unit, unless the name of the metric contains it or, for a rate,
// another rate.
func number(m verdict.Metric, v float64) string {
	isRate := strings.HasSuffix(m.Unit, "/s")
	if slices.ContainsFunc(strings.Fields(m.Name), func(word string) bool { return word == m.Unit || isRate && strings.HasSuffix(word, "/s") }) {
		return format.Quantity(v, "")
	}
	return format.Quantity(v, m.Unit)
}

func (r *Entry) status() (text string, tone report.Tone) {
	switch {
	case r.Verdict == nil:
		return "–", ""
	case r.Verdict.Verdict == verdict.Invalid:
		return "an invalid run is not compared", ""
	case r.Comparison == nil:
		return "too few earlier runs that passed", ""
	}
	namesOf := func(outcome compare.Outcome) (names []string) {
		for _, c := range r.Comparison.Changes {
			if c.Outcome == outcome {
				names = append(names, c.Name)
			}
		}
		return names
	}
	against := format.Count(len(r.Comparison.Old), "run")
	switch worse, unsure, better := r.regressions(), namesOf(compare.Unsure), namesOf(compare.Better); {
	case len(worse) > 0:
		return "regression against " + against + ": " + strings.Join(worse, "; "), report.Bad
	case len(unsure) > 0:
		return "unsure, because the load generator may be the cause: " + strings.Join(unsure, ", "), report.Doubt
	case len(better) > 0:
		return "better than " + against + ": " + strings.Join(better, ", "), report.Good
	}
	return "no worse than " + against, ""
}

func changes(old, current *Entry) (out []string) {
	add := func(name, from, to string) {
		if from != to {
			out = append(out, fmt.Sprintf("%s %s → %s", name, cmp.Or(from, "unknown"), cmp.Or(to, "unknown")))
		}
	}
	add("soak", old.Record.Version, current.Record.Version)
	add("k6", report.K6Versions(old.Verdict), report.K6Versions(current.Verdict))
	add("backend", old.Record.Backend, current.Record.Backend)
	add("nginx", old.Record.Nginx, current.Record.Nginx)
	add("machine", old.Record.Machine.Name, current.Record.Machine.Name)
	settings := compare.Settings(old.Run, current.Run)
	for _, s := range settings {
		inPlan := strings.ToLower(s.Name) // a setting that the script declares may also be in the plan
		if s.Name == inPlan || !slices.ContainsFunc(settings, func(other compare.Setting) bool { return other.Name == inPlan }) {
			add(s.Name, abbreviate(s.First), abbreviate(s.Second))
		}
	}
	return out
}

// abbreviate shortens a value for display: a hash to its first characters, and a missing or empty value to "none".
func abbreviate(value string) string {
	if value == "missing" || value == "empty" {
		return "none"
	}
	const sha256, length = 64, 12
	if len(value) == sha256 && !strings.ContainsFunc(value, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return value[:length]
	}
	return value
}

// maxChanges limits the changes that describe a run. Runs with more differences have little in common.
const maxChanges = 10

func (r *Entry) changesSincePrevious() string {
	switch {
	case r.Verdict == nil:
		return "–"
	case r.Previous == nil:
		return "the first of its suite"
	}
	list := changes(r.Previous, r)
	if n := len(list); n > maxChanges {
		list = append(list[:maxChanges], fmt.Sprintf("and %d more", n-maxChanges))
	}
	return cmp.Or(strings.Join(list, "; "), "nothing")
}
