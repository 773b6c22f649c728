package results

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// comparison compares a run with against, or else with the last run next to it that passed with the same plan. It is empty if
// there is none.
func (d Dir) comparison(v *verdict.Verdict, against Dir) (report.Section, error) {
	out := report.Section{ID: "comparison", Title: "Comparison with earlier runs", Short: "Comparison"}
	if v.Verdict == verdict.Invalid {
		return out, nil
	}
	current, err := compare.Read(string(d))
	if err != nil {
		return out, err
	}
	old, err := d.earlier()
	if err != nil {
		return out, fmt.Errorf("look for earlier runs: %w", err)
	}
	if against != "" {
		baseline, err := chosenBaseline(string(against), current)
		if err != nil {
			return out, errors.Join(errors.New("the baseline does not fit"), err)
		}
		same := func(r compare.Run) bool { return r.Verdict.TestID == baseline.Verdict.TestID }
		old = append([]compare.Run{baseline}, slices.DeleteFunc(old, same)...)
	}
	if len(old) == 0 {
		return out, nil
	}
	fillComparison(&out, old, current)
	return out, nil
}

// earlier returns the earlier runs of the same plan in the folder of the run.
func (d Dir) earlier() ([]compare.Run, error) {
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
	return h.Runs[i].earlier, nil
}

// chosenBaseline reads the run that the user chose to compare another one with.
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

// fillComparison lists the differences from the first of the old runs, and whether they are more than the noise of all of them.
func fillComparison(out *report.Section, old []compare.Run, current compare.Run) {
	against := old[0]
	name := filepath.Base(against.Dir)
	out.Lead = []string{fmt.Sprintf("Compared with %s (%s, %s), a run of the same plan.", name, against.Verdict.Verdict, format.LocalTime(against.Verdict.StartedUnix))}
	changes := map[string]compare.Change{}
	c, err := compare.Compare(old, []compare.Run{current}, compare.Tolerance)
	if err == nil {
		out.Notes = []string{fmt.Sprintf("The noise is the range that contains another run with 95 %% probability, from %s of this plan. A regression is outside of that range, and worse by over %.0f %%.",
			format.Count(len(old), "earlier run"), 100*compare.Tolerance)}
		for _, metric := range c.Blind {
			out.Notes = append(out.Notes, "Not visible: "+metric+".")
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
	before := suite.Metrics(against.Verdict)
	for _, m := range suite.Metrics(current.Verdict) {
		i := slices.IndexFunc(before, func(earlier verdict.Metric) bool { return earlier.Name == m.Name })
		if i < 0 {
			continue
		}
		oldValue := before[i].Value
		row := report.Cells(m.Name, format.Quantity(oldValue, m.Unit), format.Quantity(m.Value, m.Unit), format.Change(m.Value-oldValue, m.Unit), "–", "")
		if change, ok := changes[m.Name]; ok {
			row[4].Text, row[5] = noise(change), outcomes[change.Outcome]
		}
		t.Rows = append(t.Rows, row)
	}
	out.Tables = []report.Table{t}
}

// noise returns the range of a metric without a change: the band, or the range of the old runs for a fault.
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

// BaselineFile names the run that `soak report --baseline` last compared this one with.
const BaselineFile = "baseline.json"

// A baselineName is the content of that file.
type baselineName struct {
	Folder string `json:"folder"` // of the run that was named, without the folders above it
}

// nameBaseline stores the run that was named as the baseline. A later report without a baseline ("") keeps the stored
// one.
func (d Dir) nameBaseline(against Dir) error {
	if against == "" {
		return nil
	}
	if real, err := filepath.EvalSymlinks(string(against)); err == nil { // results/latest leads elsewhere tomorrow
		against = Dir(real)
	}
	return d.WriteJSON(BaselineFile, baselineName{against.name()})
}

// Baseline returns the folder of the run in BaselineFile, or "" without that file.
func (d Dir) Baseline() (string, error) {
	var n baselineName
	_, err := d.readJSON(BaselineFile, &n)
	return n.Folder, err
}
