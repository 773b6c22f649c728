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

// Classes of results. Each is a column of the table.
const (
	foundExactly = "found exactly"      // a clean run: passed
	undecided    = "undecided, said so" // passed, and the verdict lists the loss as undetectable
	otherwise    = "found otherwise"    // not passed, but the verdict does not match the fault
	missed       = "missed"             // passed despite a detectable fault
	falseAlarm   = "false alarm"
	saturated    = "saturated"  // this machine was too busy, so the result is not counted
	broken       = "no verdict" // the run ended without a verdict
)

var classes = []string{foundExactly, undecided, otherwise, missed, falseAlarm, saturated, broken}

// A result is the result of one scenario.
type result struct {
	Scenario     *scenario
	Class        string
	Only         string `json:",omitempty"` // kind or group that the campaign was limited to; affects the scenario of a seed
	Repeated     bool   // in an earlier attempt the machine was saturated, or the service not clean
	unclean      bool   // the attempt returned errUnclean
	Verdict      verdict.Outcome
	Undetectable uint64
	Differences  []string `json:",omitempty"`
	Reasons      []string `json:",omitempty"`
	Seconds      float64
}

// isBug reports whether the result shows a bug of the project or of the campaign.
func (r *result) isBug() bool {
	return r.Class == otherwise || r.Class == missed || r.Class == falseAlarm || r.Class == broken
}

// A campaign runs many scenarios and counts their results.
type campaign struct {
	startTime  time.Time
	seed       uint64
	runs, jobs int
	only       string // kind or group to run; "": all
	root, out  string
	mu         sync.Mutex
	results    []*result
}

// run runs all scenarios, at most jobs at a time, until ctx ends.
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

// errUnclean is the error of a clean scenario whose service committed a fault. If the scenario is wrong, every attempt
// returns it; if the service was late, the next attempt may succeed.
var errUnclean = errors.New("the service of a run that is meant to be clean was not")

// runSeed runs a scenario. It repeats the run once if this machine was too busy, and up to three times if the service
// was not clean.
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

// attempt runs a scenario. It returns nil if the campaign was stopped.
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

// tolerance returns how late the service in this process may write without changing the expected verdict.
func (sc *scenario) tolerance() time.Duration {
	if sc.Hub != nil || sc.Feed != nil {
		return hubSlack * 2 / 3
	}
	return sc.Plan.interval() / 4
}

// stall returns the longest stall of a runner of a hub or a feed. For messages sent within that time of the start or end
// of a stream, it is unknown whether the runner read them.
func (sc *scenario) stall(j *verdict.Verdict) time.Duration {
	if sc.Hub == nil && sc.Feed == nil || sc.disturb != nil { // disturb stops the runner on purpose
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
