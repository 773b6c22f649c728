package html

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/baseline"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// comparisonTolerance is the share of the old median by which a figure may get worse, as in
// `soak compare`.
const comparisonTolerance = 0.1

// comparison holds the run against earlier ones of its plan.
func (s *subject) comparison() Section {
	out := Section{ID: "comparison", Title: "Against earlier runs", Short: "Comparison"}
	b := s.Baseline
	if b.Against == nil || b.This == nil {
		if b.Why != "" {
			out.Lead = []string{b.Why}
		}
		return out
	}
	name := filepath.Base(b.Against.Dir)
	out.Lead = []string{fmt.Sprintf("Against %s (%s, %s), a run of the same plan.", name, b.Against.Verdict.Verdict, date(b.Against.Verdict.StartedUnix))}
	judged, notes := s.judged()
	t := Table{Columns: columns("", "#"+name, "#this run", "#difference", "noise of this plan", "reads as")}
	was := map[string]float64{}
	for _, f := range suite.Metrics(b.Against.Verdict) {
		was[f.Name] = f.Value
	}
	for _, f := range suite.Metrics(s.v) {
		before, ok := was[f.Name]
		if !ok {
			continue
		}
		delta := f.Value - before
		row := cells(f.Name, figure(f, before), figure(f, f.Value), plus(figure(f, delta), delta))
		t.Rows = append(t.Rows, append(row, mark(judged, f)...))
	}
	out.Tables = []Table{t}
	out.Notes = notes
	return out
}

// judged is what more runs of the plan say of this one; nil with fewer than three in all.
func (s *subject) judged() (c *baseline.Comparison, notes []string) {
	b := s.Baseline
	c, err := baseline.Compare(b.Old, []baseline.Run{*b.This}, comparisonTolerance)
	if err != nil {
		return nil, []string{fmt.Sprintf("What is noise is not known: %v.", err)}
	}
	notes = []string{fmt.Sprintf("The noise is where a further run falls with 95 %% probability, by %d earlier runs of this plan. Marked is what is outside of it, got worse by over %.0f %%, and matters.",
		len(b.Old), 100*comparisonTolerance)}
	for _, what := range c.Blind {
		notes = append(notes, "Not seen: "+what+".")
	}
	for _, w := range c.Warnings {
		notes = append(notes, "Warning: "+w+".")
	}
	return c, notes
}

// mark is the noise band of a figure and what became of it.
func mark(c *baseline.Comparison, f verdict.Metric) Row {
	if c == nil {
		return Row{{Text: "–"}, {}}
	}
	for _, change := range c.Changes {
		if change.Name != f.Name {
			continue
		}
		band := "–"
		switch {
		case change.Band != nil:
			band = figure(f, max(change.Band.Low, 0)) + " to " + figure(f, change.Band.High)
		case change.Fault:
			band = figure(f, change.Old.Min) + " to " + figure(f, change.Old.Max)
		}
		tone := map[baseline.Outcome]Tone{baseline.Worse: Bad, baseline.Better: Good, baseline.Unsure: Doubt}[change.Outcome]
		text := string(change.Outcome)
		if change.Outcome == baseline.Worse {
			text = "regression"
		}
		return Row{{Text: band}, {Text: text, Tone: tone}}
	}
	return Row{{Text: "–"}, {}}
}

func figure(f verdict.Metric, v float64) string {
	switch f.Unit {
	case "ms":
		if v < 0 {
			return "−" + duration(-v)
		}
		return duration(v)
	case "MiB":
		return memory(v)
	case "%":
		return percent(v)
	}
	if v < 0 {
		return "−" + figure(f, -v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
