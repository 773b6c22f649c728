// Command campaign soaks random services with random faults or none, and checks that each verdict and its counts match
// the fault that was injected. `make campaign` runs it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/suspension"
	"github.com/sse-soak/sse-soak/tools/page"
)

// Classes of results. Each is a column of the table.
const (
	classFound      = "found exactly"      // the verdict matches the fault, or a clean run passed
	classUndecided  = "reported undecided" // passed, and the verdict lists the loss as undetectable
	classInexact    = "found inexactly"    // the verdict does not match the fault, but is not a false pass
	classMissed     = "missed"             // passed despite a detectable fault
	classFalseAlarm = "false alarm"        // a clean run did not pass
	classSaturated  = "saturated"          // this machine was too busy, so the result is not counted
	classNoVerdict  = "no verdict"         // the run ended without a verdict, or errUnclean persisted
)

var classes = []string{classFound, classUndecided, classInexact, classMissed, classFalseAlarm, classSaturated, classNoVerdict}

type result struct {
	Scenario     *scenario
	Class        string
	Only         string `json:",omitempty"` // value of -kind, without which the seed selects a different scenario
	Repeated     bool   // an earlier attempt was saturated or unclean
	unclean      bool   // classify returned errUnclean
	Verdict      verdict.Outcome
	Undetectable uint64
	Differences  []string `json:",omitempty"`
	Reasons      []string `json:",omitempty"`
	Seconds      float64
}

// isBug reports whether the result shows a bug in the project or in the campaign.
func (r *result) isBug() bool {
	return r.Class == classInexact || r.Class == classMissed || r.Class == classFalseAlarm || r.Class == classNoVerdict
}

type campaign struct {
	startTime  time.Time
	seed       uint64
	runs, jobs int
	only       string // value of -kind; "": the default groups
	root, out  string
	mu         sync.Mutex
	results    []*result
}

func (c *campaign) run(ctx context.Context) {
	var workers errgroup.Group
	workers.SetLimit(c.jobs)
	for i := range uint64(c.runs) {
		workers.Go(func() error {
			c.runSeed(ctx, c.seed+i)
			return nil
		})
	}
	_ = workers.Wait()
}

// errUnclean is the error of a clean scenario whose service committed a fault although it was on time. Another attempt
// may succeed, unless the scenario itself is wrong.
var errUnclean = errors.New("the service committed a fault in a clean scenario")

// runSeed runs a scenario. It repeats the run once after a saturated result, and up to three times after errUnclean.
func (c *campaign) runSeed(ctx context.Context, seed uint64) {
	r := c.attempt(ctx, seed)
	for tries := 1; r != nil && (tries == 1 && r.Class == classSaturated || tries < 4 && r.unclean); tries++ {
		if r = c.attempt(ctx, seed); r != nil {
			r.Repeated = true
		}
	}
	if r == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results = append(c.results, r)
	if r.isBug() {
		fmt.Fprintln(os.Stderr, r.sentence())
	}
}

// attempt runs a scenario, and saves the files of a bug or a saturated run. It returns nil if the campaign was stopped.
func (c *campaign) attempt(ctx context.Context, seed uint64) *result {
	if ctx.Err() != nil {
		return nil
	}
	start, r := time.Now(), &result{Scenario: draw(seed, c.only), Only: c.only}
	dir, err := os.MkdirTemp("", "campaign-")
	if err == nil {
		defer os.RemoveAll(dir)
		run := &run{scenario: r.Scenario, root: c.root, dir: dir}
		var v *verdict.Verdict
		if v, err = run.execute(ctx); err == nil {
			err = r.classify(v, run)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		r.Class, r.Differences, r.unclean = classNoVerdict, []string{err.Error()}, err == errUnclean
	}
	r.Seconds = time.Since(start).Seconds()
	if r.isBug() || r.Class == classSaturated {
		c.saveRun(r, dir)
	}
	return r
}

// classify compares the verdict of a run with the expected one. It returns errUnclean if the service of a clean
// scenario committed a fault although it was on time.
func (r *result) classify(v *verdict.Verdict, run *run) error {
	sc, want, late := r.Scenario, run.expectation(), run.lateness()
	r.Verdict, r.Undetectable, r.Reasons = v.Verdict, v.Evidence.Undetectable, v.Reasons
	differences, undecided := want.compare(v)
	r.Differences = differences
	late = max(late, sc.stall(v))
	invalid := r.Verdict == verdict.Invalid
	switch {
	case sc.isClean() && !want.allows(verdict.Pass):
		r.Class = classSaturated
		if late <= sc.tolerance() {
			return errUnclean
		}
	case run.feed != nil && run.feed.wasLate():
		r.Class = classSaturated
	case undecided:
		r.Class = classUndecided
	case len(differences) == 0:
		r.Class = classFound
	case !sc.isClean() && r.Verdict == verdict.Pass && !want.allows(verdict.Pass):
		r.Class = classMissed
	case (invalid || sc.Hub != nil) && v.Generator.Saturated, invalid && isExplained(v), late > sc.tolerance():
		r.Class = classSaturated
	case sc.isClean():
		r.Class = classFalseAlarm
	default:
		r.Class = classInexact
	}
	return nil
}

// isExplained reports whether a check is inconclusive because the load generator may have caused the faults.
func isExplained(v *verdict.Verdict) bool {
	return slices.ContainsFunc(v.Checks, func(c verdict.Check) bool { return c.State() == verdict.Undecided && c.ExplainedBy != "" })
}

// tolerance returns how late the service in this process may write without changing the expected verdict.
func (sc *scenario) tolerance() time.Duration {
	if sc.Hub != nil || sc.Feed != nil {
		return hubSlack * 2 / 3
	}
	return sc.Plan.interval() / 4
}

// stall returns the longest stall of a runner. It returns 0 without a hub or a feed, and for a disturbed run. Messages
// that were sent within that time of the start or end of a stream may not have been read.
func (sc *scenario) stall(v *verdict.Verdict) time.Duration {
	if sc.Hub == nil && sc.Feed == nil || sc.disturb != nil { // disturb may stop a runner on purpose
		return 0
	}
	return time.Duration(v.Generator.StallMaxMS * float64(time.Millisecond))
}

func (c *campaign) saveRun(r *result, dir string) {
	folder := filepath.Join(c.out, fmt.Sprintf("%s-%d", strings.ReplaceAll(r.Class, " ", "-"), r.Scenario.Seed))
	err := os.RemoveAll(folder)
	if err == nil {
		err = exec.Command("cp", "-r", dir, folder).Run()
	}
	if b, jsonErr := json.MarshalIndent(r, "", "  "); err == nil && jsonErr == nil {
		err = os.WriteFile(filepath.Join(folder, "scenario.json"), b, 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "campaign: save the files of seed %d: %v\n", r.Scenario.Seed, err)
	}
}

func main() {
	suspension.Main()
	c := &campaign{startTime: time.Now()}
	flag.IntVar(&c.runs, "runs", 100, "number of scenarios")
	flag.IntVar(&c.jobs, "jobs", 4, "number of scenarios that run at a time")
	flag.Uint64Var(&c.seed, "seed", uint64(c.startTime.Unix()), "seed of the first scenario; each further scenario has the next seed")
	flag.StringVar(&c.only, "kind", "", "kind of fault, or group of kinds, to draw (empty: the default groups)")
	flag.StringVar(&c.root, "root", ".", "folder of the repository, with programs in bin/")
	flag.StringVar(&c.out, "out", "results/campaign", "folder for the table, and for the files that explain each mismatch")
	flag.Parse()
	page.Main("campaign", func(ctx context.Context) error {
		acceptable, err := c.start(ctx)
		if err == nil && !acceptable {
			os.Exit(1)
		}
		return err
	})
}

func (c *campaign) start(ctx context.Context) (acceptable bool, err error) {
	if c.only != "" && c.only != breaking && len(kindsNamed(c.only)) == 0 {
		return false, fmt.Errorf("-kind must be a kind of fault or a group of kinds, got %q", c.only)
	}
	if c.root, err = filepath.Abs(c.root); err != nil {
		return false, err
	}
	if c.out, err = filepath.Abs(c.out); err != nil {
		return false, err
	}
	if err := page.CheckBuilt(c.root); err != nil {
		return false, err
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return false, err
	}
	go func() {
		for range time.Tick(30 * time.Second) {
			fmt.Fprintln(os.Stderr, c.summary().line(c.runs))
		}
	}()
	c.run(ctx)
	s := c.summary()
	s.Commit = s.RunInfo.Commit
	return s.isAcceptable(), s.save(c.out)
}
