package main

import (
	"context"
	"encoding/json"
	"errors"
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
)

// The classes of results, which are columns of the table.
const (
	foundExactly = "found exactly"      // of a clean run: passed
	undecided    = "undecided, said so" // passed, and the verdict lists this loss as undetectable
	otherwise    = "found otherwise"    // not passed, but the verdict does not match the fault
	missed       = "missed"             // a false pass
	falseAlarm   = "false alarm"
	saturated    = "saturated"  // this machine was too busy, so the result counts for nothing
	broken       = "no verdict" // the run did not come to one
)

var classes = []string{foundExactly, undecided, otherwise, missed, falseAlarm, saturated, broken}

// A result is the outcome of a scenario.
type result struct {
	Scenario     *scenario
	Class        string
	Only         string `json:",omitempty"` // what the campaign was limited to, which changes what a seed draws
	Repeated     bool   // an earlier try was saturated, or its service not clean
	unclean      bool   // the error is errUnclean
	Verdict      verdict.Outcome
	Undetectable uint64
	Differences  []string `json:",omitempty"`
	Reasons      []string `json:",omitempty"`
	Seconds      float64
}

// isBug reports whether the result is a bug, of the project or of the campaign.
func (r *result) isBug() bool {
	return r.Class == otherwise || r.Class == missed || r.Class == falseAlarm || r.Class == broken
}

// A campaign is many scenarios.
type campaign struct {
	startTime  time.Time
	seed       uint64
	runs, jobs int
	only       string // a kind or a group
	root, out  string
	mu         sync.Mutex
	results    []*result
}

// run runs all scenarios, a limited number at a time, until ctx ends.
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

// errUnclean is the error of a clean scenario from which a fault is expected. If the scenario is wrong, each try has it; if the service
// was late, the next one may not.
var errUnclean = errors.New("the service of a run that is meant to be clean was not")

// runSeed runs a scenario, once more if this machine was too busy for it, and up to three times if its service was
// not clean.
func (c *campaign) runSeed(ctx context.Context, seed uint64) {
	r := c.attempt(ctx, seed)
	for tries := 1; r != nil && (tries == 1 && r.Class == saturated || tries < 4 && r.unclean); tries++ {
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

// attempt runs a scenario; nil: the campaign was stopped.
func (c *campaign) attempt(ctx context.Context, seed uint64) *result {
	if ctx.Err() != nil {
		return nil
	}
	began, sc := time.Now(), draw(seed, c.only)
	r := &result{Scenario: sc, Only: c.only}
	dir, err := os.MkdirTemp("", "campaign-")
	if err == nil {
		defer os.RemoveAll(dir)
		run := &run{scenario: sc, root: c.root, dir: dir}
		var j *verdict.Verdict
		if j, err = run.execute(ctx); err == nil {
			want := run.expectation()
			if r.classify(j, want, run.lateness()); sc.isClean() && !want.allows(verdict.Pass) {
				if r.Class = saturated; max(run.lateness(), sc.stall(j)) <= sc.tolerance() {
					err = errUnclean
				}
			}
			if run.feed != nil && run.feed.wasLate() {
				r.Class = saturated
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		r.Class, r.Differences, r.unclean = broken, []string{err.Error()}, err == errUnclean
	}
	r.Seconds = time.Since(began).Seconds()
	if r.isBug() || r.Class == saturated {
		c.saveRun(r, dir)
	}
	return r
}

// classify compares the verdict with the expected one. late is the longest delay with which the service in this
// process sent noops.
func (r *result) classify(j *verdict.Verdict, want *verdictExpectation, late time.Duration) {
	r.Verdict, r.Undetectable, r.Reasons = j.Verdict, j.Evidence.Undetectable, j.Reasons
	differences, hidden := want.compare(j)
	r.Differences = differences
	sc := r.Scenario
	switch {
	case hidden:
		r.Class = undecided
	case len(differences) == 0:
		r.Class = foundExactly
	case !sc.isClean() && r.Verdict == verdict.Pass && !want.allows(verdict.Pass):
		r.Class = missed
	case (r.Verdict == verdict.Invalid || sc.Hub != nil) && j.Generator.Saturated, r.Verdict == verdict.Invalid && isExplained(j),
		max(late, sc.stall(j)) > sc.tolerance():
		r.Class = saturated
	case sc.isClean():
		r.Class = falseAlarm
	default:
		r.Class = otherwise
	}
}

// isExplained reports whether a check is inconclusive because the load generator may have caused its faults.
func isExplained(j *verdict.Verdict) bool {
	return slices.ContainsFunc(j.Checks, func(c verdict.Check) bool { return c.State() == verdict.Undecided && c.ExplainedBy != "" })
}

// tolerance returns how late the service in this process may write without an effect on the expectation.
func (sc *scenario) tolerance() time.Duration {
	if sc.Hub != nil || sc.Feed != nil {
		return hubSlack * 2 / 3
	}
	return sc.Plan.interval() / 4
}

// stall returns the longest stall of a runner of a hub or a feed. Within that time of either end of a stream it is
// unknown which messages the runner read.
func (sc *scenario) stall(j *verdict.Verdict) time.Duration {
	if sc.Hub == nil && sc.Feed == nil || sc.disturb != nil { // which stops the runner on purpose
		return 0
	}
	return time.Duration(j.Generator.StallMaxMS * float64(time.Millisecond))
}

// saveRun copies the files of a run to the folder of the campaign, as evidence for the result.
func (c *campaign) saveRun(r *result, dir string) {
	to := filepath.Join(c.out, fmt.Sprintf("%s-%d", strings.ReplaceAll(r.Class, " ", "-"), r.Scenario.Seed))
	err := os.RemoveAll(to)
	if err == nil {
		err = exec.Command("cp", "-r", dir, to).Run()
	}
	if b, jsonErr := json.MarshalIndent(r, "", "  "); err == nil && jsonErr == nil {
		err = os.WriteFile(filepath.Join(to, "scenario.json"), b, 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "campaign: keep the files of seed %d: %v\n", r.Scenario.Seed, err)
	}
}
