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
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Judge makes the verdict from the files. problems are what made the files incomplete before.
func (d Dir) Judge(problems ...string) (*verdict.Verdict, *shard.Merged, error) {
	return d.JudgeExpecting(0, problems...)
}

// ExpectAny is the number for JudgeExpecting that requires no number of laptops or runners.
const ExpectAny = -1

// JudgeExpecting judges a run that requires a number of laptops, or of runners if it has a plan. 0 requires the
// number of the present verdict of the folder.
func (d Dir) JudgeExpecting(expect int, problems ...string) (*verdict.Verdict, *shard.Merged, error) {
	stored := expect == 0
	if stored {
		var before verdict.Verdict
		if exists, err := d.readJSON(VerdictFile, &before); exists && err == nil {
			if err := verdict.CheckSchema(before.Schema); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w; delete it and run `soak merge %s`", d.Path(VerdictFile), err, d)
			}
			expect = before.Expect
		}
	}
	if info, err := os.Stat(string(d)); err != nil || !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder of a run", d)
	}
	expect = max(expect, 0)
	ledger := d.serverLedger()
	go func() { _, _ = ledger() }() // concurrently
	merged, problems, err := d.merge(nil, problems...)
	if err != nil {
		return nil, nil, err
	}
	if expect > 0 {
		if problem := merged.Expect(expect); problem != "" {
			if stored {
				problem += "; the number is that of an earlier merge, and --expect 0 removes it"
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
		v.Reasons = append(slices.Clip(v.Reasons), fmt.Sprintf("the shards are of %s (PREFIX %s); the expected number is unknown; pass it by `soak merge --expect N`",
			format.Count(len(laptops), "laptop"), strings.Join(laptops, ", ")))
	}
	if v.TestID == "" { // of k6 alone, without TESTID
		v.TestID = d.name()
	}
	return v, merged, nil
}

// name returns the name of the folder.
func (d Dir) name() string {
	if path, err := filepath.Abs(string(d)); err == nil {
		return filepath.Base(path)
	}
	return filepath.Base(string(d))
}

// shardFiles returns the paths of all shards, in the order of their runners if names show it.
func (d Dir) shardFiles() ([]string, error) {
	var paths []string
	for _, folder := range []string{ShardsDir, "."} { // or a folder of shards only, as two laptops would collect them
		found, err := filepath.Glob(d.Path(filepath.Join(folder, "*"+shard.Suffix)))
		if err != nil {
			return nil, err
		}
		paths = slices.DeleteFunc(found, func(path string) bool { return !shard.IsFile(filepath.Base(path)) })
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

// merge adds up all shards of the known plan, or of the plan in the files if known is nil. A shard that cannot be read is a
// problem of the run and does not end the merge; problems come first in the result.
func (d Dir) merge(known *plan.Plan, problems ...string) (m *shard.Merged, all []string, err error) {
	paths, err := d.shardFiles()
	if err != nil {
		return nil, nil, err
	}
	var merger shard.Merger
	var first *shard.Shard
	for read := range shardsOf(paths) {
		s := read.shard
		if read.err != nil {
			problems = append(problems, read.err.Error())
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
	switch {
	case exists:
		return merger.Merged(p), problems, nil
	case err != nil:
		problems = append(problems, err.Error())
	}
	switch {
	case first == nil && len(problems) == 0:
		return nil, nil, fmt.Errorf("%s holds neither %s nor a shard: it is not a folder of a run", d, PlanFile)
	case first == nil: // there was a run, and that is all there is to say
		p = plan.Default()
		p.Connections, p.Runners = 0, max(len(paths), 1)
	default:
		declared, ok := suite.Declared(first, len(paths))
		if ok {
			return merger.Merged(declared), problems, nil
		}
		if err := first.Plan.Check(); err != nil {
			return nil, nil, fmt.Errorf("the shards in %s are of no soak: %w", d, err)
		}
		return merger.MergeWithoutPlan(), problems, nil
	}
	return merger.Merged(p), problems, nil
}

// A readShard is one of shardsOf.
type readShard struct {
	shard *shard.Shard
	err   error
}

// shardsOf reads files ahead, one on each core, and yields them in their order. All of a thousand
// are never in memory at once.
func shardsOf(paths []string) iter.Seq[readShard] {
	return func(yield func(readShard) bool) {
		reads := make(chan chan readShard, runtime.GOMAXPROCS(0)-1)
		done := make(chan struct{})
		defer close(done)
		go func() {
			defer close(reads)
			for _, path := range paths {
				one := make(chan readShard, 1)
				select {
				case reads <- one:
				case <-done:
					return
				}
				go func() {
					s, err := shard.ReadFile(path)
					one <- readShard{s, err}
				}()
			}
		}()
		for one := range reads {
			if !yield(<-one) {
				return
			}
		}
	}
}

// Plan returns plan.json.
func (d Dir) Plan() (plan.Plan, error) {
	p, exists, err := d.plan()
	if err == nil && !exists {
		err = fmt.Errorf("%s is missing", d.Path(PlanFile))
	}
	return p, err
}

// plan reads plan.json. exists is false if `soak run` wrote none, or none that can be read.
func (d Dir) plan() (p plan.Plan, exists bool, err error) {
	exists, err = d.readJSON(PlanFile, &p)
	if err == nil && exists {
		err = checkPlan(p)
	}
	if err != nil {
		return p, false, fmt.Errorf("%s does not say what was planned: %w", PlanFile, err)
	}
	return p, exists, nil
}

// checkPlan checks a plan of any suite.
func checkPlan(p plan.Plan) error {
	kind, err := suite.ByName(p)
	if err != nil {
		return err
	}
	return kind.Check(p)
}

// hasConnections reports whether connections.csv has a row. A suite that acts on all of its streams lists none of
// them.
func hasConnections(v *verdict.Verdict) bool {
	for range v.Records() {
		return true
	}
	return false
}

// Report writes verdict.json and all reports. against is a run of the same plan to compare with; "" is the last one
// in the same folder that passed.
func (d Dir) Report(v *verdict.Verdict, m *shard.Merged, against Dir) error {
	samples, err := resources.Read(d.Path(ResourcesFile))
	if err != nil {
		samples = nil // already a warning of the verdict
	}
	brief := report.Brief(v)
	err = errors.Join(
		d.WriteJSON(VerdictFile, v),
		d.Write("report.txt", func(w io.Writer) error { return report.Text(w, brief) }),
		d.Write("report.md", func(w io.Writer) error { return report.Markdown(w, brief) }),
		d.Write("series.csv", func(w io.Writer) error { return report.SeriesCSV(w, m, samples) }),
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
	page, err := d.page(v, m, samples, against)
	if err != nil {
		return err
	}
	if err := d.nameBaseline(against); err != nil {
		return err
	}
	return d.Write(PageFile, func(w io.Writer) error { return html.Write(w, report.Full(page)) })
}
