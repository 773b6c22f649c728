// Command campaign soaks random services with random faults or none, and checks that each verdict and its counts match
// the fault that was injected. `make campaign` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/test/suspension"
	"github.com/sse-soak/sse-soak/tools/page"
)

func main() {
	suspension.Main()
	c := &campaign{startTime: time.Now()}
	flag.IntVar(&c.runs, "runs", 100, "scenarios to run")
	flag.IntVar(&c.jobs, "jobs", 4, "scenarios that run at a time")
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
