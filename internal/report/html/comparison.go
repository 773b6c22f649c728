package html

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// comparison compares the run with an earlier one of its plan, and with what is normal for the plan.
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
	out.Lead = []string{fmt.Sprintf("Against %s (%s, %s), a run of the same plan.", name, b.Against.Verdict.Verdict, format.Moment(b.Against.Verdict.StartedUnix))}
	changes := s.changes(&out)
	t := Table{Columns: columns("figure", "#"+name, "#this run", "#difference", "noise of this plan", "reads as")}
	before := suite.Metrics(b.Against.Verdict)
	for _, m := range suite.Metrics(s.v) {
		i := slices.IndexFunc(before, func(was verdict.Metric) bool { return was.Name == m.Name })
		if i < 0 {
			continue
		}
		was, delta := before[i].Value, m.Value-before[i].Value
		row := cells(m.Name, Metric(m, was), Metric(m, m.Value), plus(Metric(m, delta), delta), "–", "")
		if change, ok := changes[m.Name]; ok {
			row[4].Text = noise(change)
			row[5] = outcomes[change.Outcome]
		}
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []Table{t}
	return out
}

var outcomes = map[compare.Outcome]Cell{
	compare.Same: {Text: "same"}, compare.Better: {Text: "better", Tone: Good}, compare.Worse: {Text: "regression", Tone: Bad}, compare.Unsure: {Text: "unsure", Tone: Doubt},
}

// changes are what more runs of the plan say of this one, by metric; none with fewer than three in all.
// The notes of the section say what they rest on.
func (s *subject) changes(out *Section) map[string]compare.Change {
	b := s.Baseline
	c, err := compare.Compare(b.Old, []compare.Run{*b.This}, compare.Tolerance)
	if err != nil {
		out.Notes = []string{fmt.Sprintf("What is noise is not known: %v.", err)}
		return nil
	}
	out.Notes = []string{fmt.Sprintf("The noise is where a further run falls with 95 %% probability, by %d earlier runs of this plan. Marked is what is outside of it, got worse by over %.0f %%, and matters.",
		len(b.Old), 100*compare.Tolerance)}
	for _, what := range c.Blind {
		out.Notes = append(out.Notes, "Not seen: "+what+".")
	}
	for _, w := range c.Warnings {
		out.Notes = append(out.Notes, "Warning: "+w+".")
	}
	changes := map[string]compare.Change{}
	for _, change := range c.Changes {
		changes[change.Name] = change
	}
	return changes
}

// noise is where a metric falls without a change: the band, or what the old runs had of a fault.
func noise(c compare.Change) string {
	switch {
	case c.Band != nil:
		return Metric(c.Metric, max(c.Band.Low, 0)) + " to " + Metric(c.Metric, c.Band.High)
	case c.Fault:
		return Metric(c.Metric, c.Old.Min) + " to " + Metric(c.Metric, c.Old.Max)
	}
	return "–"
}

// Metric is a value of a metric with its unit.
func Metric(m verdict.Metric, v float64) string {
	switch {
	case m.Unit == "MiB":
		return memory(v)
	case m.Unit == "%", m.Unit == suite.OfRequests:
		return percent(v)
	case v < 0:
		return "−" + Metric(m, -v)
	case m.Unit == "ms":
		return duration(v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
