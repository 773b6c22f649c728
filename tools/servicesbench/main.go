// Command servicesbench soaks the services of test/services and our own backend, one after the other on this machine
// with the same load, or runs another suite of soak on them, and writes a table of what each delivered, what the suite
// found and what it cost. `make services-bench` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/tools/page"
)

// load is what each service gets.
type load struct {
	Connections int     `json:"connections"`
	Topics      int     `json:"topics"`
	Rate        float64 `json:"publish_rate"` // messages per second, all topics together
	Seconds     int     `json:"seconds"`
	Runners     int     `json:"runners"`
}

// interval is that of the messages of one stream. Our backend, which has no topics, sends noops at it.
func (l load) interval() float64 { return float64(l.Topics) / l.Rate }

type bench struct {
	load
	root, out string
	suite     string   // "": the soak
	more      []string // arguments of `soak run` besides
	only      string   // names with commas; "": all
	chosen    []string // by only
}

func main() {
	var b bench
	flag.IntVar(&b.Connections, "connections", 2000, "streams")
	flag.IntVar(&b.Topics, "topics", 20, "topics that they are dealt to")
	flag.Float64Var(&b.Rate, "publish-rate", 20, "messages per second, all topics together")
	flag.IntVar(&b.Seconds, "seconds", 300, "how long each service is soaked")
	flag.IntVar(&b.Runners, "runners", 2, "k6 processes")
	flag.StringVar(&b.root, "root", ".", "the repository, with bin/ built")
	flag.StringVar(&b.out, "out", "results/services", "folder for the table, the figures and each service's run")
	flag.StringVar(&b.suite, "suite", "", "run this suite on each, such as resume; empty: the soak")
	flag.StringVar(&b.only, "only", "", "these services alone, with commas: "+strings.Join(names(), ",")+"; NAME"+bare+" is one that keeps nothing for a stream that comes back")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "servicesbench [FLAGS] [-- FLAGS OF soak run]")
		flag.PrintDefaults()
	}
	flag.Parse()
	b.more = flag.Args()
	page.Main("servicesbench", b.run)
}

// check validates the settings before any service is started.
func (b *bench) check() (err error) {
	known := names()
	for _, name := range names() {
		known = append(known, name+bare)
	}
	if b.chosen, err = page.Choose(b.only, known); err != nil {
		return err
	}
	if b.only == "" {
		b.chosen = names()
	}
	if b.Connections < 1 || b.Topics < 1 || b.Rate <= 0 || b.Runners < 1 || b.Seconds < 15 {
		return errors.New("-connections, -topics, -publish-rate and -runners must be positive, and -seconds at least 15")
	}
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	if b.out, err = filepath.Abs(b.out); err != nil {
		return err
	}
	if err := page.CheckBuilt(b.root); err != nil {
		return err
	}
	return os.MkdirAll(b.out, 0o755)
}

// run soaks each service in turn. A service that cannot be started or soaked is a row that says so; what was measured
// is written after each, so that an end in between loses nothing.
func (b *bench) run(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	r := report{Schema: 2, Date: time.Now(), Ran: page.Here(b.root), Suite: b.suite, Load: b.load}
	for _, name := range b.chosen {
		page.Progress("%s …", name)
		row := b.measure(ctx, name)
		if ctx.Err() != nil {
			return fmt.Errorf("soak %s: %w", name, context.Cause(ctx))
		}
		page.Progress("%s: %s", name, row.outcome())
		r.Rows = append(r.Rows, row)
		if err := page.Save(filepath.Join(b.out, "services"), r, r.write); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}
