package results

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Judge returns the verdict of the run, and its merged shards. The problems state why the files are incomplete.
func (d Dir) Judge(problems ...string) (*verdict.Verdict, *shard.Merged, error) {
	return d.JudgeExpecting(0, problems...)
}

// ExpectAny makes JudgeExpecting accept any number of laptops or runners.
const ExpectAny = -1

// JudgeExpecting is Judge with a required number of laptops, or of runners if the run has a plan. If expect is 0, the
// number in the existing verdict of the folder applies.
func (d Dir) JudgeExpecting(expect int, problems ...string) (*verdict.Verdict, *shard.Merged, error) {
	useEarlier := expect == 0
	if useEarlier {
		var earlier verdict.Verdict
		if exists, err := d.readJSON(VerdictFile, &earlier); exists && err == nil {
			if err := verdict.CheckSchema(earlier.Schema); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w; delete it and run `soak merge %s`", d.Path(VerdictFile), err, d)
			}
			expect = earlier.Expect
		}
	}
	if info, err := os.Stat(string(d)); err != nil || !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not the folder of a run", d)
	}
	expect = max(expect, 0)
	ledger := d.serverLedger()
	go func() { _, _ = ledger() }() // reads the ledger while merge reads the shards
	merged, problems, err := d.merge(nil, problems...)
	if err != nil {
		return nil, nil, err
	}
	if expect > 0 {
		if problem := merged.Expect(expect); problem != "" {
			if useEarlier {
				problem += "; the expected number comes from an earlier merge; pass --expect 0 to remove it"
			}
			problems = append(problems, problem)
		}
	}
	problems = append(problems, d.checkManifests(merged.Plan, merged.Runners)...)
	run, err := d.readRun(merged.Runners)
	if err != nil {
		problems = append(problems, err.Error())
	}
	e, err := d.evidence(merged, run, ledger)
	if err != nil {
		return nil, nil, err
	}
	e.Problems = append(problems, e.Problems...)
	v, err := suite.Judge(e)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d, err)
	}
	v.Expect = expect
	if laptops := merged.Prefixes(); expect == 0 && v.Verdict == verdict.Pass && len(laptops) > 0 {
		v.Reasons = append(slices.Clip(v.Reasons), fmt.Sprintf("the shards are from %s (PREFIX %s); the expected number is unknown; pass it with `soak merge --expect N`",
			format.Count(len(laptops), "laptop"), strings.Join(laptops, ", ")))
	}
	if v.TestID == "" { // k6 ran alone, without TESTID
		v.TestID = d.name()
	}
	return v, merged, nil
}

// name returns the name of the folder, even if d is a relative path such as ".".
func (d Dir) name() string {
	if path, err := filepath.Abs(string(d)); err == nil {
		return filepath.Base(path)
	}
	return filepath.Base(string(d))
}

// shardFiles returns the paths of all shards, sorted by the index of the runner in their names.
func (d Dir) shardFiles() ([]string, error) {
	var paths []string
	for _, folder := range []string{ShardsDir, "."} { // the folder itself has the shards if a user collected them from laptops
		matches, err := filepath.Glob(d.Path(filepath.Join(folder, "*"+shard.Suffix)))
		if err != nil {
			return nil, err
		}
		paths = slices.DeleteFunc(matches, func(path string) bool { return !shard.IsFile(filepath.Base(path)) })
		if len(paths) > 0 {
			break
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		first, _ := shard.IndexOf(filepath.Base(a))
		second, _ := shard.IndexOf(filepath.Base(b))
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(a, b))
	})
	return paths, nil
}

// merge adds up all shards. It uses the known plan, or the plan in the files if known is nil. An unreadable shard is
// a problem of the run. allProblems begins with the given problems.
func (d Dir) merge(known *plan.Plan, problems ...string) (m *shard.Merged, allProblems []string, err error) {
	paths, err := d.shardFiles()
	if err != nil {
		return nil, nil, err
	}
	var merger shard.Merger
	var first *shard.Shard
	for result := range shardsOf(paths) {
		s := result.shard
		if result.err != nil {
			merger.AddUnreadable(result.err)
			continue
		}
		merger.Add(s)
		if first == nil {
			first = &shard.Shard{Plan: s.Plan, Suite: s.Suite, Runner: s.Runner}
		}
	}
	if known != nil {
		return merger.Merged(*known), problems, nil
	}
	p, exists, err := d.plan()
	if err != nil {
		problems = append(problems, err.Error())
	}
	switch {
	case exists:
	case first == nil && len(paths)+len(problems) == 0:
		return nil, nil, fmt.Errorf("%s has neither %s nor a shard: it is not the folder of a run", d, PlanFile)
	case first == nil: // there was a run, but its plan is unknown
		p = plan.Default()
		p.Connections, p.Runners = 0, max(len(paths), 1)
	default:
		var ok bool
		if p, ok = suite.Declared(first, len(paths)); ok {
			break
		}
		if err := first.Plan.Check(); err != nil {
			return nil, nil, fmt.Errorf("the shards in %s have no valid plan: %w", d, err)
		}
		return merger.MergeWithoutPlan(), problems, nil
	}
	return merger.Merged(p), problems, nil
}

type shardResult struct {
	shard *shard.Shard
	err   error
}

// shardsOf yields the shards of files in order. To limit memory, it reads at most one file per core at a time.
func shardsOf(paths []string) iter.Seq[shardResult] {
	return func(yield func(shardResult) bool) {
		results := make(chan chan shardResult, runtime.GOMAXPROCS(0)-1)
		done := make(chan struct{})
		defer close(done)
		go func() {
			defer close(results)
			for _, path := range paths {
				result := make(chan shardResult, 1)
				select {
				case results <- result:
				case <-done:
					return
				}
				go func() {
					s, err := shard.ReadFile(path)
					result <- shardResult{s, err}
				}()
			}
		}()
		for result := range results {
			if !yield(<-result) {
				return
			}
		}
	}
}

// Plan reads plan.json. It returns an error if the file is missing.
func (d Dir) Plan() (plan.Plan, error) {
	p, exists, err := d.plan()
	if err == nil && !exists {
		err = fmt.Errorf("%s is missing", d.Path(PlanFile))
	}
	return p, err
}

// plan reads plan.json. exists is false if there is no plan.json, or if it is not valid.
func (d Dir) plan() (p plan.Plan, exists bool, err error) {
	exists, err = d.readJSON(PlanFile, &p)
	if err == nil && exists {
		var kind suite.Suite
		if kind, err = suite.ByName(p); err == nil {
			err = kind.Check(p)
		}
	}
	if err != nil {
		return p, false, fmt.Errorf("%s is not a valid plan: %w", PlanFile, err)
	}
	return p, exists, nil
}

// hasConnections reports whether a verdict has records of streams, which are the rows of connections.csv.
func hasConnections(v *verdict.Verdict) bool {
	for range v.Records() {
		return true
	}
	return false
}

// Report writes verdict.json and all reports. baseline is a run of the same plan to compare with; "" selects the last
// such run next to this folder that passed without a regression. Report also stores the name of a given baseline.
func (d Dir) Report(v *verdict.Verdict, m *shard.Merged, baseline Dir) error {
	samples, err := resources.Read(d.Path(ResourcesFile))
	if err != nil {
		samples = nil // already a warning or a problem of the verdict
	}
	brief := report.Brief(v)
	err = errors.Join(
		d.WriteJSON(VerdictFile, v),
		d.Write("report.txt", func(w io.Writer) error { return report.Text(w, brief) }),
		d.Write("report.md", func(w io.Writer) error { return report.Markdown(w, brief) }),
		d.Write("series.csv", func(w io.Writer) error { return report.SeriesCSV(w, m, v, samples) }),
	)
	if hasConnections(v) {
		err = errors.Join(err, d.Write(ConnectionsFile, func(w io.Writer) error { return report.ConnectionsCSV(w, m, v) }))
	}
	for i := range v.Tables {
		err = errors.Join(err, d.Write(report.TableFile(&v.Tables[i]), func(w io.Writer) error { return report.TableCSV(w, &v.Tables[i]) }))
	}
	if err == nil && len(v.Cuts) > 0 {
		err = d.Write(CutsFile, func(w io.Writer) error { return report.CutsCSV(w, m, v) })
	}
	if err != nil {
		return err
	}
	page, err := d.page(v, m, samples, baseline)
	if err != nil {
		return err
	}
	if err := d.saveBaseline(baseline); err != nil {
		return err
	}
	return d.Write(PageFile, func(w io.Writer) error { return html.Write(w, report.Full(page)) })
}

// maxInPage is the maximum size of a file in a page, in bytes: a table of 100,000 connections makes browsers slow.
const maxInPage = 8 << 20

// page collects the content of report.html. verdict.json and the tables must exist.
func (d Dir) page(v *verdict.Verdict, m *shard.Merged, samples []resources.Sample, baseline Dir) (*report.Run, error) {
	first := 0
	if len(m.Runners) > 0 {
		first = m.Runners[0].Index
	}
	// An unreadable run.json is already a problem of the verdict.
	out := &report.Run{Verdict: v, Merged: m, Samples: samples, Provenance: d.Run(first).Provenance}
	names := []string{VerdictFile, "series.csv"}
	if hasConnections(v) {
		names = append(names, ConnectionsFile)
	}
	for i := range v.Tables {
		names = append(names, report.TableFile(&v.Tables[i]))
	}
	if len(v.Cuts) > 0 {
		names = append(names, CutsFile)
	}
	for _, name := range names {
		content, err := safefile.Read(d.Path(name), maxInPage)
		if errors.Is(err, safefile.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("put %s into the page: %w", name, err)
		}
		out.Files = append(out.Files, report.File{Name: name, Content: content})
	}
	var err error
	out.Comparison, err = d.comparison(v, baseline)
	return out, err
}
