package results

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A State describes the folder of a run without a readable verdict.
type State string

// The values of State.
const (
	Unfinished State = "unfinished" // no verdict yet
	Damaged    State = "damaged"    // the verdict cannot be read
)

// An Entry describes the folder of one run.
type Entry struct {
	compare.Run           // its Verdict is nil if State is not ""
	Name        string    // of the folder
	State       State     // "" with a verdict
	Reason      string    // reason for the state, as a sentence; "" with a verdict
	Started     time.Time // start of the run; if no file has it, the modification time of a file of the run
	Record      RunRecord // content of run.json; empty if it cannot be read, and without a verdict
	Page        bool      // the folder has a report.html

	Plan        *PlanRuns           // the runs of the same plan; nil without a verdict
	Previous    *Entry              // the previous run of the same plan, or else of the same suite; nil for the first
	Comparison  *compare.Comparison // with earlierRuns; nil if the run cannot be compared with them
	earlierRuns []compare.Run       // the earlier runs of the plan that define the normal range, the latest first
	metrics     map[string]float64  // values by the name of the metric; nil without a verdict
}

// PlanRuns has the runs of one plan, which can be compared with each other.
type PlanRuns struct {
	Title string
	Runs  []*Entry // the oldest first
}

// A History is the content of a folder of results.
type History struct {
	Folder    string
	Runs      []*Entry    // the newest first
	Plans     []*PlanRuns // the plan with the newest run first
	Unrelated []string    // folders that do not belong to a run
}

// ReadHistory reads the folder of all runs, including damaged and unfinished runs.
func ReadHistory(folder string) (*History, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no folder %s; start a run first, or name another folder with --out", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read the folder of all runs: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { // `latest` is a link to a run
		return !e.IsDir() || isHidden(e)
	})
	runs := make([]*Entry, len(entries))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, e := range entries {
		group.Go(func() error {
			runs[i] = readEntry(filepath.Join(folder, e.Name()))
			return nil
		})
	}
	_ = group.Wait()
	h := &History{Folder: folder}
	for i, r := range runs {
		if r == nil {
			h.Unrelated = append(h.Unrelated, entries[i].Name())
			continue
		}
		h.Runs = append(h.Runs, r)
	}
	slices.SortStableFunc(h.Runs, func(a, b *Entry) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.Name, a.Name))
	})
	h.relate()
	return h, nil
}

func isHidden(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }

// readEntry returns the entry of a folder, or nil if the folder does not belong to a run.
func readEntry(folder string) *Entry {
	d := Dir(folder)
	r := &Entry{Name: filepath.Base(folder), Page: d.exists(PageFile)}
	if !d.exists(VerdictFile) {
		return r.unfinishedEntry(d)
	}
	var err error
	if r.Run, err = compare.Open(string(d)); err != nil {
		r.Run = compare.Run{Dir: string(d)}
		r.State, r.Started = Damaged, d.modTime(VerdictFile)
		r.Reason = fmt.Sprintf("its %s cannot be read (%s); delete the file, and write it again with soak merge", VerdictFile, reason(err))
		return r
	}
	first := 0
	if len(r.Verdict.Runners) > 0 {
		first = r.Verdict.Runners[0].Index
	}
	r.Record = d.Run(first)
	r.Started = time.UnixMicro(int64(1e6 * r.Verdict.StartedUnix)).UTC()
	if r.Verdict.StartedUnix <= 0 { // no runner left a shard
		r.Started = d.modTime(VerdictFile)
	}
	r.metrics = map[string]float64{}
	for _, m := range suite.Metrics(r.Verdict) {
		r.metrics[m.Name] = m.Value
	}
	return r
}

// unfinishedEntry completes the entry of a run without a verdict. It returns nil if d is not the folder of a run.
func (r *Entry) unfinishedEntry(d Dir) *Entry {
	names := []string{PlanFile, ManifestFile, ShardsDir}
	i := slices.IndexFunc(names, func(name string) bool { return d.exists(name) })
	if i < 0 {
		return nil
	}
	r.Run, r.State, r.Started = compare.Run{Dir: string(d)}, Unfinished, d.modTime(names[i])
	r.Reason = "it has no verdict: it is running, was interrupted, or is one part of a distributed run; judge its data with soak merge"
	return r
}

// modTime returns the modification time of a file, to the second, or the zero time if it is unknown.
func (d Dir) modTime(name string) time.Time {
	info, err := os.Stat(d.Path(name))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC().Truncate(time.Second)
}

// reason returns the text of the innermost error, because outer errors repeat the name of the file.
func reason(err error) string {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err.Error()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// relate sets Plans, and the Plan, Previous and Comparison of each run.
func (h *History) relate() {
	plans, last := map[string]*PlanRuns{}, map[string]*Entry{}
	for _, r := range slices.Backward(h.Runs) {
		if r.Verdict == nil {
			continue
		}
		key, kind := r.Run.Plan(), r.Verdict.Plan.Suite
		p := plans[key]
		if p == nil {
			p = &PlanRuns{Title: suite.Title(r.Verdict)}
			plans[key] = p
			r.Previous = last[kind]
		} else {
			r.Previous = p.Runs[len(p.Runs)-1]
		}
		r.Plan, last[kind] = p, r
		p.compare(r)
		p.Runs = append(p.Runs, r)
	}
	for _, r := range h.Runs {
		if r.Plan != nil && !slices.Contains(h.Plans, r.Plan) {
			h.Plans = append(h.Plans, r.Plan)
		}
	}
}

// compare compares a run with the earlier runs of its plan that passed without a regression. An invalid run has no
// comparison.
func (p *PlanRuns) compare(r *Entry) {
	if r.Verdict.Verdict == verdict.Invalid {
		return
	}
	var candidates []compare.Run
	for _, other := range p.Runs {
		if other.Comparison == nil || len(other.Comparison.Regressions()) == 0 {
			candidates = append(candidates, other.Run)
		}
	}
	r.earlierRuns = compare.EarlierRuns(candidates, r.Run)
	// An error means that there are too few runs, or that one is a copy of another. The run then has no comparison.
	r.Comparison, _ = compare.Compare(r.earlierRuns, []compare.Run{r.Run}, compare.Tolerance)
}

// outcome returns the outcome of a run as text: its state, or the word of its verdict.
func (r *Entry) outcome() string {
	if r.Verdict == nil {
		return string(r.State)
	}
	return r.Verdict.Word()
}

// regressions returns a sentence for each metric that got worse. It omits the failed verdict if another metric got
// worse.
func (r *Entry) regressions() (out []string) {
	if r.Comparison == nil {
		return nil
	}
	worse := r.Comparison.Regressions()
	for _, change := range worse {
		if change.Name != failedVerdict || len(worse) == 1 {
			out = append(out, change.Sentence())
		}
	}
	return out
}
