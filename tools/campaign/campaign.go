package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The classes of results.
const (
	foundExactly = "exactly"   // of a clean run: passed
	undecided    = "undecided" // passed, and the verdict says that this loss could not have been noticed
	otherwise    = "otherwise" // not passed, but the verdict does not match the fault
	missed       = "missed"    // a false pass
	falseAlarm   = "false alarm"
	starved      = "starved" // this machine was too busy, so the result counts for nothing
	broken       = "broken"  // the run did not come to a verdict
)

// A result is what became of a scenario.
type result struct {
	Scenario    *scenario
	Class       string
	Only        string `json:",omitempty"` // what the campaign was limited to, which changes what a seed draws
	Repeated    bool   // the first try was starved
	Verdict     verdict.Outcome
	CouldHide   int
	Differences []string `json:",omitempty"`
	Reasons     []string `json:",omitempty"`
	Seconds     float64
}

// bad says that the result is a bug, of the project or of the campaign.
func (r *result) bad() bool {
	return r.Class == otherwise || r.Class == missed || r.Class == falseAlarm || r.Class == broken
}

// A campaign is many scenarios.
type campaign struct {
	seed       uint64
	runs, jobs int
	only       string // a kind or a group
	root, out  string
	mu         sync.Mutex
	results    []*result
	running    int
}

// run runs all scenarios, so many at a time, until ctx ends.
func (c *campaign) run(ctx context.Context) {
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range c.jobs {
		workers.Go(func() {
			for seed := range seeds {
				c.one(ctx, seed)
			}
		})
	}
	for i := range uint64(c.runs) {
		select {
		case seeds <- c.seed + i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(seeds)
	workers.Wait()
}

func (c *campaign) one(ctx context.Context, seed uint64) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	r := c.try(ctx, draw(seed, c.only))
	if r != nil && r.Class == starved {
		if r = c.try(ctx, draw(seed, c.only)); r != nil {
			r.Repeated = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if r != nil {
		c.results = append(c.results, r)
	}
}

// try runs a scenario; nil: the campaign was stopped.
func (c *campaign) try(ctx context.Context, sc *scenario) *result {
	dir, err := os.MkdirTemp("", "campaign-")
	if err != nil {
		return &result{Scenario: sc, Class: broken, Differences: []string{err.Error()}}
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	j, want, late, err := do(ctx, sc, c.root, dir)
	if errors.Is(err, errStopped) || ctx.Err() != nil {
		return nil
	}
	r := &result{Scenario: sc, Only: c.only, Seconds: time.Since(began).Seconds()}
	if err != nil {
		r.Class, r.Differences = broken, []string{err.Error()}
	} else {
		r.classify(j, &want, late)
	}
	if r.bad() || r.Class == starved {
		c.keep(r, dir)
	}
	return r
}

// classify compares the verdict with what was expected. late is by how much the service in this process
// sent noops later than it was meant to.
func (r *result) classify(j *judged, want *expected, late time.Duration) {
	r.Verdict, r.CouldHide, r.Reasons = j.Verdict.Verdict, j.Evidence.CouldHide, j.Reasons
	differences, hidden := want.compare(j)
	r.Differences = differences
	sc := r.Scenario
	switch {
	case hidden:
		r.Class = undecided
	case len(differences) == 0:
		r.Class = foundExactly
	case !sc.clean() && j.Verdict.Verdict == verdict.Pass && !want.allows(verdict.Pass):
		r.Class = missed
	case j.Verdict.Verdict == verdict.Invalid && (j.Generator.Saturated || j.blamesGenerator()), late > sc.Plan.interval()/4:
		r.Class = starved
	case sc.clean():
		r.Class = falseAlarm
	default:
		r.Class = otherwise
	}
}

func (e *expected) allows(o verdict.Outcome) bool {
	for _, one := range e.Outcomes {
		if one == o {
			return true
		}
	}
	return false
}

// keep copies the files that explain a result to the folder of the campaign.
func (c *campaign) keep(r *result, dir string) {
	to := filepath.Join(c.out, fmt.Sprintf("%s-%d", strings.ReplaceAll(r.Class, " ", "-"), r.Scenario.Seed))
	if os.MkdirAll(to, 0o755) != nil {
		return
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		_ = os.WriteFile(filepath.Join(to, "scenario.json"), b, 0o644)
	}
	for _, name := range []string{
		"soak.txt", "out/t/verdict.json", "out/t/report.txt", "out/t/connections.csv", "out/t/backend-ledger.ndjson", "copy/verdict.json", "copy/report.txt",
		"out/t/k6-runner-1.log", "nginx.log", "laptops/verdict.json", "laptops/report.txt", "k6-0.txt", "k6-1.txt",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			_ = os.WriteFile(filepath.Join(to, strings.ReplaceAll(name, "/", "-")), b, 0o644)
		}
	}
}
