// Command campaign soaks random services with random faults or none, and checks that each verdict and
// its counts match the fault that was injected. `make campaign` runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	c := &campaign{}
	flag.IntVar(&c.runs, "runs", 100, "scenarios to run")
	flag.IntVar(&c.jobs, "jobs", 4, "scenarios that run at a time")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().Unix()), "seed of the first scenario; each further scenario has the next seed")
	flag.StringVar(&c.only, "kind", "", "draw only this kind of fault, or this group of kinds")
	flag.StringVar(&c.root, "root", ".", "the repository, with bin/ built")
	flag.StringVar(&c.out, "out", "results/campaign", "folder for the table, and for the files that explain each mismatch")
	flag.Parse()
	ok, err := start(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func start(c *campaign) (ok bool, err error) {
	if c.only != "" && len(named(c.only)) == 0 {
		return false, fmt.Errorf("there is no kind %q", c.only)
	}
	for _, path := range []*string{&c.root, &c.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return false, err
		}
	}
	for _, program := range []string{"soak", "k6", "backend"} {
		if _, err := os.Stat(filepath.Join(c.root, "bin", program)); err != nil {
			return false, fmt.Errorf("bin/%s is missing: `make build` makes it", program)
		}
	}
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return false, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(ctx)
	}()
	c.progress(began, done)
	s := c.summary()
	s.WallSeconds = time.Since(began).Seconds()
	if commit, err := exec.Command("git", "-C", c.root, "describe", "--always", "--dirty").Output(); err == nil {
		s.Commit = strings.TrimSpace(string(commit))
	}
	s.text(os.Stdout)
	return s.good(), s.save(c.out)
}

// progress shows a progress line until done is closed: on a terminal it updates the line every second,
// elsewhere it prints one every 30 s.
func (c *campaign) progress(began time.Time, done <-chan struct{}) {
	every, end := 30*time.Second, "\n"
	if term.IsTerminal(int(os.Stderr.Fd())) {
		every, end = time.Second, "\r"
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := 0
	for {
		select {
		case <-done:
			c.tell(told)
			fmt.Fprintf(os.Stderr, "%s\n", c.line(began))
			return
		case <-tick.C:
			told = c.tell(told)
			fmt.Fprintf(os.Stderr, "%s%s", c.line(began), end)
		}
	}
}

// tell prints the bad results beyond the first told ones, and returns how many results there are.
func (c *campaign) tell(told int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.results[told:] {
		if r.bad() {
			fmt.Fprintf(os.Stderr, "\033[K%s\n", r.sentence())
		}
	}
	return len(c.results)
}

func (c *campaign) line(began time.Time) string {
	s := c.summary()
	left := ""
	if took := time.Since(began); s.Runs > 0 && s.Runs < c.runs {
		left = ", " + (took * time.Duration(c.runs-s.Runs) / time.Duration(s.Runs)).Round(time.Second).String() + " left"
	}
	return fmt.Sprintf("campaign %d of %d: %d faulty (%d exactly, %d undecided, %d otherwise, %d missed), %d clean (%d false alarms), %d starved%s ",
		s.Runs, c.runs, s.Faulty.PutIn, s.Faulty.Exactly, s.Faulty.Undecided, s.Faulty.Otherwise+s.Faulty.Broken, s.Faulty.Missed,
		s.Clean.PutIn, s.Clean.FalseAlarms+s.Clean.Broken, s.Faulty.Starved+s.Clean.Starved, left)
}
