package results

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// comparison compares a run with a baseline. If baseline is "", the baseline is the last earlier run of the same plan
// that passed without a regression. Without a baseline, or for an invalid run, the section is empty.
func (d Dir) comparison(v *verdict.Verdict, baseline Dir) (report.Section, error) {
	out := report.Section{ID: "comparison", Title: "Comparison with earlier runs", Short: "Comparison"}
	if v.Verdict == verdict.Invalid {
		return out, nil
	}
	current, err := compare.Read(string(d))
	if err != nil {
		return out, err
	}
	old, err := d.earlierRuns()
	if err != nil {
		return out, fmt.Errorf("look for earlier runs: %w", err)
	}
	if baseline != "" {
		chosen, err := chosenBaseline(string(baseline), current)
		if err != nil {
			return out, fmt.Errorf("the baseline cannot be compared with this run: %w", err)
		}
		isSame := func(r compare.Run) bool { return r.Verdict.TestID == chosen.Verdict.TestID }
		old = append([]compare.Run{chosen}, slices.DeleteFunc(old, isSame)...)
	}
	if len(old) == 0 {
		return out, nil
	}
	fillComparison(&out, old, current)
	return out, nil
}

// earlierRuns returns the earlier runs of the same plan, next to d, that define the normal range, the latest first.
func (d Dir) earlierRuns() ([]compare.Run, error) {
	folder, err := filepath.Abs(string(d))
	if err != nil {
		return nil, err
	}
	h, err := ReadHistory(filepath.Dir(folder))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(h.Runs, func(r *Entry) bool { return r.Name == filepath.Base(folder) })
	if i < 0 {
		return nil, nil
	}
	return h.Runs[i].earlierRuns, nil
}

// chosenBaseline reads the baseline that the user chose. It returns an error if current cannot be compared with it.
func chosenBaseline(folder string, current compare.Run) (compare.Run, error) {
	baseline, err := compare.Read(folder)
	if err == nil {
		err = compare.SamePlan(baseline, current)
	}
	if err == nil && baseline.Verdict.TestID == current.Verdict.TestID {
		err = fmt.Errorf("%s is the run itself", folder)
	}
	return baseline, err
}

var outcomes = map[compare.Outcome]report.Cell{
	compare.Same: {Text: "same"}, compare.Better: {Text: "better", Tone: report.Good}, compare.Worse: {Text: "regression", Tone: report.Bad},
	compare.Unsure: {Text: "unsure", Tone: report.Doubt},
}

// fillComparison lists the differences from the baseline, the first of the old runs, and the noise of all old runs.
func fillComparison(out *report.Section, old []compare.Run, current compare.Run) {
	baseline := old[0]
	name := filepath.Base(baseline.Dir)
	out.Lead = []string{fmt.Sprintf("Compared with %s (%s, %s), a run of the same plan.", name, baseline.Verdict.Verdict, format.UnixTime(baseline.Verdict.StartedUnix))}
	changes := map[string]compare.Change{}
	c, err := compare.Compare(old, []compare.Run{current}, compare.Tolerance)
	if err == nil {
		out.Notes = []string{fmt.Sprintf("The noise is the range that contains a further run with 95 %% probability, from %s of this plan. A regression is outside of that range, and worse by over %.0f %%. A fault that none of these runs had is always a regression.",
			format.Count(len(old), "earlier run"), 100*compare.Tolerance)}
		for _, metric := range c.Undetectable {
			out.Notes = append(out.Notes, "Undetectable: "+metric+".")
		}
		for _, w := range c.Warnings {
			out.Notes = append(out.Notes, "Warning: "+w+".")
		}
		for _, change := range c.Changes {
			changes[change.Name] = change
		}
	} else {
		out.Notes = []string{fmt.Sprintf("The noise is unknown: %v.", err)}
	}
	t := report.Table{Columns: report.Columns("figure", "#"+name, "#this run", "#difference", "noise of this plan", "result")}
	baselineMetrics := suite.Metrics(baseline.Verdict)
	for _, m := range suite.Metrics(current.Verdict) {
		i := slices.IndexFunc(baselineMetrics, func(metric verdict.Metric) bool { return metric.Name == m.Name })
		if i < 0 {
			continue
		}
		oldValue := baselineMetrics[i].Value
		row := report.Cells(m.Name, format.Quantity(oldValue, m.Unit), format.Quantity(m.Value, m.Unit), format.Change(m.Value-oldValue, m.Unit), "–", "")
		if change, ok := changes[m.Name]; ok {
			row[4].Text, row[5] = noise(change), outcomes[change.Outcome]
		}
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []report.Table{t}
}

// noise returns the range due to chance: the band or, for a fault, the range of the old runs. It returns "–" if the
// range is unknown.
func noise(c compare.Change) string {
	low, high := c.Old.Min, c.Old.Max
	switch {
	case c.Band != nil:
		low, high = max(c.Band.Low, 0), c.Band.High
	case !c.Fault:
		return "–"
	}
	return format.Quantity(low, c.Unit) + " to " + format.Quantity(high, c.Unit)
}

// BaselineFile has the name of the run with which `soak report --baseline` last compared this run.
const BaselineFile = "baseline.json"

type baselineName struct {
	Folder string `json:"folder"` // name of the folder of the baseline
}

// saveBaseline stores the name of the baseline that the user chose. If baseline is "", it keeps the stored name.
func (d Dir) saveBaseline(baseline Dir) error {
	if baseline == "" {
		return nil
	}
	if folder, err := filepath.EvalSymlinks(string(baseline)); err == nil { // the link results/latest changes
		baseline = Dir(folder)
	}
	return d.WriteJSON(BaselineFile, baselineName{baseline.name()})
}

// Baseline returns the name of the folder in BaselineFile, or "" if there is no such file.
func (d Dir) Baseline() (string, error) {
	var n baselineName
	_, err := d.readJSON(BaselineFile, &n)
	return n.Folder, err
}
